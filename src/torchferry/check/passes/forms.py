"""Operators in the form of older opsets, with numbers in attributes that newer ones take as inputs, written in the newer form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.weave import Weaver
from torchferry.check.reading import graph
from torchferry.check.types import dtypes

Recipe = Callable[[Weaver, onnx.NodeProto, dict[str, Any], str], str]  # nodes made with the weaver; returns the result's name


def _axes_as_input(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    kept = {k: v for k, v in values.items() if k != "axes"}
    return w.op(node.op_type, [node.input[0], w.const(values["axes"])], **kept)


def _clip(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    dtype = dtypes.of_text(f"tensor({word})")
    bounds = [w.const(values[k], dtype) if k in values else "" for k in ("min", "max")]
    return w.op("Clip", [node.input[0], *bounds])


def _slice(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    parts = [values["starts"], values["ends"], values.get("axes", list(range(len(values["starts"]))))]
    return w.op("Slice", [node.input[0], *(w.const(list(p)) for p in parts)])


def _pad(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    mode = values.get("mode", b"constant").decode()
    fill = w.const(values.get("value", 0.0), dtypes.of_text(f"tensor({word})"))
    return w.op("Pad", [node.input[0], w.const(values["pads"]), *([fill] if mode == "constant" else [])], mode=mode)


def _dropout(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return w.op("Dropout", [node.input[0], w.const(values["ratio"], np.float32)])


REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
# operator: the attribute that tells the old form, and how to write the new one
FORMS: dict[str, tuple[str, Recipe]] = {
    **dict.fromkeys(("Unsqueeze", "Squeeze", *(f"Reduce{r}" for r in REDUCTIONS)), ("axes", _axes_as_input)),
    "Clip": ("min", _clip),
    "Slice": ("starts", _slice),
    "Pad": ("pads", _pad),
    "Dropout": ("ratio", _dropout),
}


def newer_form(node: onnx.NodeProto) -> Recipe | None:
    """Return how to write a node in the newer form of its operator; None if it has that already, or gives more than one value."""
    told, recipe = FORMS.get(node.op_type, ("", None))
    values = graph.attributes(node)
    old = told in values or (node.op_type == "Clip" and "max" in values)
    return recipe if old and len(node.input) == 1 and sum(map(bool, node.output)) == 1 and not node.domain else None
