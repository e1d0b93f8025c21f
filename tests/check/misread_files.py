"""Broken files whose mending could make other numbers of theirs: labels, zero points, and what an older stamp means."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from broken_files import F32, FED, Broken, T, X, broken, model, node, saved, value


@broken
def labels_declared_as_numbers() -> Broken:
    """A classifier's labels are whole numbers, as its attributes say; the file promises floats."""
    classify = node(
        "LinearClassifier", ["x"], ["label", "score"], "classify", domain="ai.onnx.ml",
        coefficients=[1.0, -1, 2, 0, -1, 1, 0, 2], intercepts=[0.5, 0], classlabels_ints=[4, 9], post_transform="NONE",
    )  # fmt: skip
    outputs = [value("label", T.FLOAT, ["N"]), value("score", T.FLOAT, ["N", 2])]

    def right(feed: dict[str, Any]) -> list[Any]:
        score = feed["x"] @ np.array([[1, -1, 2, 0], [-1, 1, 0, 2]], F32).T + np.array([0.5, 0], F32)
        return [np.array([4, 9])[score.argmax(1)], score]

    return Broken(saved(model([classify], [X], outputs, extra=[("ai.onnx.ml", 1)])), FED, right)


@broken
def zero_point_of_another_type() -> Broken:
    """128 as a uint8 is where 0 is as an int8: casting the zero point would shift every number."""
    nodes = [
        node("QuantizeLinear", ["x", "scale", "z8"], ["q"], "pack"),
        node("DequantizeLinear", ["q", "scale", "zi"], ["y"], "unpack"),
    ]
    stored = [("scale", np.array(0.1, F32)), ("z8", np.array(128, np.uint8)), ("zi", np.array(0, np.int8))]
    return Broken(saved(model(nodes, [X], [value("y", T.FLOAT, ["N", 4])], stored, opset=13)), FED, None, "unpack")


def _softmax_and(op: str) -> Any:
    nodes = [node("Unsqueeze", ["x"], ["x3"], axes=[2]), node(op, ["x3"], ["h"], op), node("Softmax", ["h"], ["y"], "p")]
    return model(nodes, [X], [value("y", T.FLOAT, ["N", 4, 1])], opset=11, ir=6)


@broken
def new_operator_beside_an_old_softmax() -> Broken:
    """Softmax means something else from opset 13 on: the new operator is written out, and the stamp stays."""

    def right(feed: dict[str, Any]) -> list[Any]:
        e = np.exp(feed["x"] * np.clip(feed["x"] / 6 + 0.5, 0, 1))
        return [(e / e.sum(1, keepdims=True))[..., None]]

    return Broken(saved(_softmax_and("HardSwish")), FED, right)


@broken
def stamp_that_decides_what_softmax_means() -> Broken:
    return Broken(saved(_softmax_and("Trilu")), FED, None, "Trilu")


@broken
def a_count_in_bfloat16_that_float_would_go_on_with() -> Broken:
    """256 + 1 is 256 in bfloat16: computed in float throughout, the file would give 2."""
    stored = [(n, np.asarray(v, ml_dtypes.bfloat16)) for n, v in (("one", 1), ("many", 256))]
    nodes = [node("Add", ["x", "one"], ["a"]), node("Add", ["a", "one"], ["b"]), node("Sub", ["b", "many"], ["y"])]
    made = model(nodes, *[[value(n, T.BFLOAT16, ["N"])] for n in "xy"], stored)
    return Broken(saved(made), [{"x": np.asarray([256, 256], ml_dtypes.bfloat16)}], lambda f: [np.zeros(2)])
