"""Graph passes that an Edit may ask for by name: `Edit("translate", "<name>", params)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from torchferry.errors import UsageError, did_you_mean
from torchferry.records import Edit, Facts
from torchferry.translate.passes.attention import whole_attention
from torchferry.translate.passes.logits import last_logits
from torchferry.translate.passes.nans import propagate_nan
from torchferry.translate.passes.norms import whole_norms
from torchferry.translate.passes.padding import guard_pad_before_maxpool
from torchferry.translate.passes.products import whole_products
from torchferry.translate.passes.rotations import whole_rotations
from torchferry.translate.passes.slices import no_whole_slices

Pass = Callable[[ir.Model, Facts], None]

PASSES: Mapping[str, Pass] = {
    "guard-pad-before-maxpool": guard_pad_before_maxpool,
    "last-logits": last_logits,
    "no-whole-slices": no_whole_slices,
    "propagate-nan": propagate_nan,
    "whole-attention": whole_attention,
    "whole-norms": whole_norms,
    "whole-products": whole_products,
    "whole-rotations": whole_rotations,
}
ELSEWHERE = {"inline-custom-operator", "optimiser-off"}  # carried out before there is a graph


def apply(model: ir.Model, edits: Sequence[Edit]) -> dict[str, Any]:
    """Carry out the edits in order, in place; return what a session must set, as `session` edits say."""
    settings: dict[str, Any] = {}
    for edit in edits:
        if edit.name in ELSEWHERE:
            continue
        if edit.name == "session":  # {"disabled": [...]}, {"level": "basic"}: options of ort.session
            settings.update(edit.params)
        else:
            _named(str(edit.params["name"]) if edit.name == "graph-pass" else edit.name)(model, edit.params)
    return settings


def _named(name: str) -> Pass:
    if name not in PASSES:
        raise UsageError(f"no graph pass is called `{name}`{did_you_mean(name, [*PASSES, 'session'])}")
    return PASSES[name]
