"""Graph passes that an edit may ask for, each by its class in `torchferry.edits.translate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from torchferry.edits.translate import (
    GuardPadBeforeMaxpool,
    InlineCustomOperator,
    LastLogits,
    NoWholeSlices,
    OptimiserOff,
    PropagateNan,
    SessionOptions,
    TranslateEdit,
    WholeAttention,
    WholeNorms,
    WholeProducts,
    WholeRotations,
)
from torchferry.errors import UsageError
from torchferry.ops.passes.attention import whole_attention
from torchferry.ops.passes.logits import last_logits
from torchferry.ops.passes.nans import propagate_nan
from torchferry.ops.passes.normalisation import whole_norms
from torchferry.ops.passes.padding import guard_pad_before_maxpool
from torchferry.ops.passes.products import whole_products
from torchferry.ops.passes.rotations import whole_rotations
from torchferry.ops.passes.slices import no_whole_slices
from torchferry.records.answers import SessionWords

PASSES: Mapping[type[TranslateEdit], Callable[[ir.Model], None]] = {
    GuardPadBeforeMaxpool: guard_pad_before_maxpool,
    LastLogits: last_logits,
    NoWholeSlices: no_whole_slices,
    PropagateNan: propagate_nan,
    WholeAttention: whole_attention,
    WholeNorms: whole_norms,
    WholeProducts: whole_products,
    WholeRotations: whole_rotations,
}


def apply(model: ir.Model, edits: Sequence[TranslateEdit]) -> SessionWords:
    """Carry out the edits in order, in place; return what a session must set, as `SessionOptions` say."""
    settings: SessionWords = {}
    for edit in edits:
        if isinstance(edit, SessionOptions):
            if edit.disabled:
                settings["disabled"] = list(edit.disabled)
            if edit.level:
                settings["level"] = edit.level
        elif type(edit) in PASSES:
            PASSES[type(edit)](model)
        elif not isinstance(edit, InlineCustomOperator | OptimiserOff):  # which were carried out before there was a graph
            raise UsageError(f"the translation cannot carry out `{edit}`")
    return settings
