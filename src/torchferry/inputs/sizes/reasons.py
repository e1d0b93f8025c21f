"""Why a size is fixed, in a few words, from what the eager model said when it was changed."""

from __future__ import annotations

import re

from torchferry.foreign import torch_messages
from torchferry.inputs.sizes.probing import NOT_TRIED, Refusal

MOST = 70  # letters


def why_fixed(refusal: Refusal | None, size: int) -> str:
    """Return "conv1 wants 3 channels", or what the model said, or nothing."""
    if refusal is None or refusal.text == NOT_TRIED:
        return ""
    kind = refusal.module_type
    if refusal.module_path and re.fullmatch(r"(Lazy)?Conv(Transpose)?[123]d", kind):
        return (
            f"{refusal.module_path} wants {size} channels"
            if torch_messages.wants_channels(refusal.text)
            else f"{refusal.module_path} cannot take another size"
        )
    if refusal.module_path and kind in (
        "Linear",
        "Bilinear",
        "LSTM",
        "GRU",
        "RNN",
        "LayerNorm",
        "RMSNorm",
        "BatchNorm1d",
        "BatchNorm2d",
    ):
        return f"{refusal.module_path} wants {size}"
    if refusal.rows is not None and torch_messages.past_the_rows(refusal.text):
        return f"{refusal.module_path} has {refusal.rows} rows"
    first = torch_messages.telling_line(refusal.text)
    return first if len(first) <= MOST else first[: MOST - 3].rstrip() + "..."
