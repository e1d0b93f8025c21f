"""ATen operators that exporters leave behind, written out in ONNX: {name: how}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.weave import OfOneType, Weaver
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.ops import activations

How = Callable[[Weaver, list[str], dict[str, Any], str], str]


def aten_name(node: onnx.NodeProto) -> str:
    """Return the ATen operator that a node stands for ("logaddexp"), or nothing."""
    if node.op_type == "ATen":
        operator = graph.attributes(node).get("operator", b"")
        return str(operator.decode("utf-8", "replace").removeprefix("aten::")) if isinstance(operator, bytes) else ""
    if "aten" in node.domain.split("."):
        return str(node.op_type).removeprefix("aten::").removeprefix("aten_")
    return ""


def _const(w: Weaver, value: float, word: str) -> str:
    return w.const(value, dtypes.of_text(f"tensor({word})"))


def _logaddexp(w: Weaver, x: list[str], values: dict[str, Any], word: str, base: float = 1.0) -> str:
    """max + log(1 + exp(-|a - b|)): exact where exp alone would overflow."""
    top = w.op("Max", x[:2])
    gap = w.op("Neg", [w.op("Abs", [w.op("Sub", x[:2])])])
    scaled = w.op("Mul", [gap, _const(w, base, word)]) if base != 1 else gap
    soft = w.op("Log", [w.op("Add", [w.op("Exp", [scaled]), _const(w, 1, word)])])
    return w.op("Add", [top, w.op("Div", [soft, _const(w, base, word)]) if base != 1 else soft])


def _hypot(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    return w.op("Sqrt", [w.op("Add", [w.op("Mul", [x[0], x[0]]), w.op("Mul", [x[1], x[1]])])])


def _xlogy(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    zero = _const(w, 0, word)
    return w.op("Where", [w.op("Equal", [x[0], zero]), zero, w.op("Mul", [x[0], w.op("Log", [x[1]])])])


def _lerp(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    return w.op("Add", [x[0], w.op("Mul", [x[2], w.op("Sub", [x[1], x[0]])])])


def _plus_one(op: str, before: bool) -> How:
    def made(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
        one = _const(w, 1, word)
        return w.op(op, [w.op("Add", [x[0], one])]) if before else w.op("Sub", [w.op(op, [x[0]]), one])

    return made


def _trunc(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    return w.op("Mul", [w.op("Sign", [x[0]]), w.op("Floor", [w.op("Abs", [x[0]])])])


def _frac(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    return w.op("Sub", [x[0], _trunc(w, x, values, word)])


def _scaled(factor: float) -> How:
    return lambda w, x, values, word: w.op("Mul", [x[0], _const(w, factor, word)])


def _addc(op: str) -> How:
    def made(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
        part = w.op(op, [x[1], x[2]])
        return w.op("Add", [x[0], w.op("Mul", [part, x[3]]) if len(x) > 3 and x[3] else part])

    return made


def _sinc(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    turn = w.op("Mul", [x[0], _const(w, np.pi, word)])
    zero = w.op("Equal", [x[0], _const(w, 0, word)])
    safe = w.op("Where", [zero, _const(w, 1, word), turn])
    return w.op("Where", [zero, _const(w, 1, word), w.op("Div", [w.op("Sin", [safe]), safe])])


def _logit(w: Weaver, x: list[str], values: dict[str, Any], word: str) -> str:
    return w.op("Log", [w.op("Div", [x[0], w.op("Sub", [_const(w, 1, word), x[0]])])])


def _plain(op: str, count: int = 1) -> How:
    return lambda w, x, values, word: w.op(op, x[:count])


ATEN: dict[str, How] = {
    "logaddexp": _logaddexp,
    "logaddexp2": lambda w, x, values, word: _logaddexp(w, x, values, word, float(np.log(2))),
    "hypot": _hypot,
    "xlogy": _xlogy,
    "lerp": _lerp,
    "log1p": _plus_one("Log", before=True),
    "expm1": _plus_one("Exp", before=False),
    "trunc": _trunc,
    "frac": _frac,
    "sinc": _sinc,
    "logit": _logit,
    "deg2rad": _scaled(float(np.pi / 180)),
    "rad2deg": _scaled(float(180 / np.pi)),
    "log2": lambda w, x, values, word: w.op("Div", [w.op("Log", [x[0]]), _const(w, float(np.log(2)), word)]),
    "log10": lambda w, x, values, word: w.op("Div", [w.op("Log", [x[0]]), _const(w, float(np.log(10)), word)]),
    "rsqrt": lambda w, x, values, word: w.op("Reciprocal", [w.op("Sqrt", [x[0]])]),
    "square": lambda w, x, values, word: w.op("Mul", [x[0], x[0]]),
    "silu": lambda w, x, values, word: w.op("Mul", [x[0], w.op("Sigmoid", [x[0]])]),
    "addcmul": _addc("Mul"),
    "addcdiv": _addc("Div"),
    "maximum": _plain("Max", 2),
    "minimum": _plain("Min", 2),
    "erf": _plain("Erf"),
    "softsign": _plain("Softsign"),
    "mish": lambda w, x, values, word: activations.mish(OfOneType(w, word), x[0]),
    "exp2": lambda w, x, values, word: w.op("Pow", [_const(w, 2, word), x[0]]),
    "mv": _plain("MatMul", 2),
    "mm": _plain("MatMul", 2),
    "bmm": _plain("MatMul", 2),
    "matmul": _plain("MatMul", 2),
}
