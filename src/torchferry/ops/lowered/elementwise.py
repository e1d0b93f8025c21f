"""Elementwise operators and comparisons that came late, and Clip, whose bounds were attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from torchferry.ops import activations
from torchferry.ops.draft import Draft, attribute, constant_of

Values = Sequence[ir.Value] | None


class _OfOneType:
    """The draft of a graph in which every value has the dtype of the first."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._dtype = draft, _first(draft).dtype

    def op(self, op_type: str, *inputs: ir.Value, **attributes: float) -> ir.Value:
        return self._draft(op_type, *inputs, dtype=self._dtype, **attributes)

    def number(self, value: float) -> ir.Value:
        return self._draft.constant(value, self._dtype)


def _mish(draft: Draft, wanted: int) -> Values:
    return [activations.mish(_OfOneType(draft), _first(draft))]


def _hard_swish(draft: Draft, wanted: int) -> Values:
    return [activations.hard_swish(_OfOneType(draft), _first(draft))]


def _gelu(draft: Draft, wanted: int) -> Values:
    x = _first(draft)
    if x.dtype is None:
        return None
    return [activations.gelu(_OfOneType(draft), x, tanh=attribute(draft.old, "approximate", "none") == "tanh")]


def _cast_like(draft: Draft, wanted: int) -> Values:
    like = draft.old.inputs[1]
    if like is None or like.dtype is None:
        return None
    return [draft("Cast", draft.old.inputs[0], to=int(like.dtype), dtype=like.dtype)]


def _clip(draft: Draft, wanted: int) -> Values:
    x = _first(draft)
    low, high = ([*draft.old.inputs, None, None])[1:3]
    if wanted >= 8 and (wanted < 11 or x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)):
        if wanted < 12 and x.dtype is not None and x.dtype.is_integer():
            return None  # Max and Min of integers came with 12 too
        value = x if low is None else draft("Max", x, low, dtype=x.dtype)
        return [value if high is None else draft("Min", value, high, dtype=x.dtype)]
    return [draft("Clip", x, low, high, dtype=x.dtype)]


def _or_equal(strict: str) -> Callable[[Draft, int], Values]:
    """`a >= b` as `a > b or a == b`: `not a < b` would be true of a NaN."""

    def lowering(draft: Draft, wanted: int) -> Values:
        a, b = draft.old.inputs
        return [
            draft(
                "Or",
                draft(strict, a, b, dtype=ir.DataType.BOOL),
                draft("Equal", a, b, dtype=ir.DataType.BOOL),
                dtype=ir.DataType.BOOL,
            )
        ]

    return lowering


def _reshape(draft: Draft, wanted: int) -> Values:
    """Without allowzero a 0 copies the input's size; only an empty tensor can tell the difference."""
    value, shape = draft.old.inputs
    assert value is not None
    fixed = constant_of(shape)
    if fixed is not None and (fixed == 0).any() and attribute(draft.old, "allowzero", 0):
        return None
    return [draft("Reshape", value, shape, dtype=value.dtype)]


def _dropout(draft: Draft, wanted: int) -> Values:
    return [_first(draft)] if len(draft.old.inputs) < 3 or constant_of(draft.old.inputs[2]) == 0 else None


def _first(draft: Draft) -> ir.Value:
    value = draft.old.inputs[0]
    assert value is not None
    return value


LOWERINGS = {
    "Mish": (9, _mish),
    "HardSwish": (9, _hard_swish),
    "Gelu": (9, _gelu),
    "CastLike": (9, _cast_like),
    "Clip": (9, _clip),
    "GreaterOrEqual": (11, _or_equal("Greater")),
    "LessOrEqual": (11, _or_equal("Less")),
    "Reshape": (9, _reshape),
    "Dropout": (9, _dropout),
}
