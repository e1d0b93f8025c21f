"""nn.TransformerEncoder as eager runs it: padded positions come out as zeros, where a capture would compute something there.

In eval mode without gradients torch packs the batch into a nested tensor, drops the padding, and fills it with zeros at the
end. It does so only for masks whose padding is all on the right, which is a question to the values of the mask.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torchferry.foreign.torch_modules import children_of


def is_affected(module: nn.Module) -> bool:
    """Whether a module takes torch's nested fast path in eager, and not in a capture."""
    stock = isinstance(module, nn.TransformerEncoder) and type(module).forward is nn.TransformerEncoder.forward
    return stock and bool(getattr(module, "use_nested_tensor", False)) and not module.layers[0].training  # type: ignore[index, union-attr]


def prepare(module: nn.Module) -> nn.Module:
    """Return the module with encoders that leave zeros where eager's fast path leaves them."""
    for part in module.modules():
        if is_affected(part):
            part.__class__ = type(type(part).__name__, (type(part),), {"forward": _forward})
    return module


def _forward(self: Any, src: Tensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None) -> Tensor:
    """Return the encoder's output, with zeros before the last norm where eager puts them."""
    if src_key_padding_mask is None or mask is not None or src.dim() != 3:
        return nn.TransformerEncoder.forward(self, src, mask, src_key_padding_mask, is_causal)
    parts = children_of(self)
    norm, parts["norm"] = parts.get("norm"), None
    try:
        output = nn.TransformerEncoder.forward(self, src, mask, src_key_padding_mask, is_causal)
    finally:
        parts["norm"] = norm
    padded = src_key_padding_mask if src_key_padding_mask.dtype == torch.bool else src_key_padding_mask != 0
    # a step that is kept behind one that is padded: then the padding is not all on the right
    ragged = (padded[:, :-1] & ~padded[:, 1:]).any() if getattr(self, "mask_check", True) else torch.zeros((), dtype=torch.bool)
    output = output.masked_fill((padded & ~ragged).unsqueeze(-1), 0.0)
    return output if norm is None else norm(output)  # type: ignore[no-any-return]
