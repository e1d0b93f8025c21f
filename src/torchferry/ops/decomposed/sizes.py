"""Arithmetic on sizes and on numbers taken from tensors, as Python does it: floats in double precision, floored division.

torch.onnx declares such floats as float32. Each step here ends in a cast to that, and the next step takes the double from
before the cast: `int(0.7 * n)` must not depend on float32's rounding.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from torchferry.foreign.torch_operators import aten
from torchferry.foreign.torch_shapes import sym_functions

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, ir.Value) and value.dtype in FLOATS)


def _wide(value: Any) -> Any:
    """Return a number in double precision; one of ours as it was before its cast."""
    if not isinstance(value, ir.Value):
        return op.Constant(value=ir.tensor(float(value), dtype=ir.DataType.DOUBLE))
    made_by = value.producer()
    if made_by is not None and made_by.op_type == "Cast" and made_by.inputs[0].dtype == ir.DataType.DOUBLE:
        return made_by.inputs[0]
    return op.Cast(value, to=ir.DataType.DOUBLE)


def _narrow(value: Any) -> Any:
    value.dtype = ir.DataType.DOUBLE
    return op.Cast(value, to=ir.DataType.FLOAT)


def _whole(value: Any) -> Any:
    return value if isinstance(value, ir.Value) else op.Constant(value=ir.tensor(int(value), dtype=ir.DataType.INT64))


def _floored(a: Any, b: Any) -> Any:
    """Return a // b: ONNX's Div rounds towards zero, its Mod has Python's sign."""
    return op.Div(op.Sub(a, op.Mod(a, b)), b)


def arithmetic(whole: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a binary operator for whole numbers and for floats."""

    def function(a: Any, b: Any) -> Any:
        if _is_float(a) or _is_float(b):
            return _narrow(real(_wide(a), _wide(b)))
        return whole(_whole(a), _whole(b))

    return function


def comparison(compare: Callable[..., Any]) -> Callable[..., Any]:
    """Return a comparison of numbers."""

    def function(a: Any, b: Any) -> Any:
        if _is_float(a) or _is_float(b):
            return compare(_wide(a), _wide(b))
        return compare(_whole(a), _whole(b))

    return function


def _unequal(a: Any, b: Any) -> Any:
    return op.Not(op.Equal(a, b))


def _real_mod(a: Any, b: Any) -> Any:
    return op.Sub(a, op.Mul(b, op.Floor(op.Div(a, b))))


def true_division(a: Any, b: Any) -> Any:
    """Return a / b, a float whatever the numbers are."""
    return _narrow(op.Div(_wide(a), _wide(b)))


def negative(a: Any) -> Any:
    """Return -a."""
    return _narrow(op.Neg(_wide(a))) if _is_float(a) else op.Neg(_whole(a))


def to_whole(rounding: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rounding to a whole number."""

    def function(a: Any, *_: Any) -> Any:
        return op.Cast(rounding(_wide(a)), to=ir.DataType.INT64) if _is_float(a) else op.Identity(_whole(a))

    return function


def of_float(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a float in double precision."""
    return lambda a: _narrow(function(_wide(a)))


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that onnxruntime has in float32 only."""
    return lambda a: function(op.Cast(_wide(a), to=ir.DataType.FLOAT))


def _truncated(a: Any) -> Any:
    return op.Mul(op.Sign(a), op.Floor(op.Abs(a)))


def _log2(a: Any) -> Any:
    return op.Div(op.Log(a), op.Constant(value=ir.tensor(math.log(2.0), dtype=ir.DataType.DOUBLE)))


def size_of(self: Any) -> Any:
    """Return the number of elements."""
    return op.Size(self)


def remainder(self: Any, other: Any) -> Any:
    """Return the remainder with the divisor's sign, also for a divisor that is a size; a rounded quotient would be too coarse."""
    tensor = self if isinstance(self, ir.Value) else other
    number, divisor = (
        op.CastLike(v if isinstance(v, ir.Value) else op.Constant(value=ir.tensor(v)), tensor) for v in (self, other)
    )
    if tensor.dtype is not None and tensor.dtype.is_floating_point():
        rest = op.Mod(number, divisor, fmod=1)
        zero = op.CastLike(op.Constant(value_float=0.0), tensor)
        crossed = op.And(op.Not(op.Equal(rest, zero)), op.Less(op.Mul(rest, op.Sign(divisor)), zero))
        return op.Where(crossed, op.Add(rest, divisor), rest)
    return op.Mod(number, divisor)


OF_SIZES: dict[str, Callable[..., Any]] = {  # those that torch has no public name for
    "sqrt": of_float(op.Sqrt),
    "log2": of_float(_log2),
    "sin": of_float(op.Sin),
    "cos": of_float(op.Cos),
    "tan": in_single(op.Tan),
    "tanh": of_float(op.Tanh),
    "asin": in_single(op.Asin),
    "acos": in_single(op.Acos),
    "atan": in_single(op.Atan),
}
TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    operator.add: arithmetic(op.Add, op.Add),
    operator.sub: arithmetic(op.Sub, op.Sub),
    operator.mul: arithmetic(op.Mul, op.Mul),
    operator.floordiv: arithmetic(_floored, lambda a, b: op.Floor(op.Div(a, b))),
    operator.mod: arithmetic(op.Mod, _real_mod),
    operator.pow: arithmetic(op.Pow, op.Pow),
    builtins.pow: arithmetic(op.Pow, op.Pow),
    operator.truediv: true_division,
    operator.neg: negative,
    operator.gt: comparison(op.Greater),
    operator.ge: comparison(op.GreaterOrEqual),
    operator.lt: comparison(op.Less),
    operator.le: comparison(op.LessOrEqual),
    operator.eq: comparison(op.Equal),
    operator.ne: comparison(_unequal),
    operator.not_: op.Not,
    math.trunc: to_whole(_truncated),
    math.floor: to_whole(op.Floor),
    math.ceil: to_whole(op.Ceil),
    builtins.round: to_whole(op.Round),
    torch.sym_int: to_whole(_truncated),
    torch.sym_float: of_float(op.Identity),
    torch.sym_max: arithmetic(op.Max, op.Max),
    torch.sym_min: arithmetic(op.Min, op.Min),
    **{function: OF_SIZES[name] for name, function in sym_functions().items() if name in OF_SIZES},
    aten.sym_numel.default: size_of,
    aten.remainder.Scalar: remainder,
    aten.remainder.Scalar_Tensor: remainder,
    aten.remainder.Tensor: remainder,
}
