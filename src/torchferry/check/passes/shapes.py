"""Passes that let sizes move: axes freed in the signature, constants that hold an example's sizes computed instead.

A size is written as data: 4, ["size", value, axis], ["mul", size, size], ["div", size, 2], ["sub", size, 2].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.weave import Weaver, find, forget_shapes, lay_open
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import infer
from torchferry.edits.check import FreeSizes, RewriteConstants, TransposeOperand, ZeroMaskedRows
from torchferry.records import Facts


def free_axes(model: onnx.ModelProto, axes: Mapping[str, Mapping[str, str]]) -> None:
    """Declare axes of inputs and outputs as free, {value: {axis: name}}."""
    for value in (*model.graph.input, *model.graph.output):
        for axis, name in axes.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[int(axis)].dim_param = name  # a oneof: the fixed size goes
    forget_shapes(model)


def free_sizes(model: onnx.ModelProto, edit: FreeSizes) -> None:
    """Free axes, and compute the constants that hold their former sizes."""
    free_axes(model, edit.axes)
    rewrite(model, edit.rewrites)


def transpose_operand(model: onnx.ModelProto, edit: TransposeOperand) -> None:
    """Flip transA or transB of a Gemm."""
    place = find(model, edit.node)
    if place is not None:
        graph.set_attribute(place.node, edit.attribute, 1 - int(graph.attributes(place.node).get(edit.attribute, 0)))
        forget_shapes(model)


def rewrite_constants(model: onnx.ModelProto, edit: RewriteConstants) -> None:
    """Compute constants that hold an example's sizes."""
    rewrite(model, edit.rewrites)


def rewrite(model: onnx.ModelProto, rewrites: Sequence[Facts]) -> None:
    """Carry out a list of rewrites, each `{"do": name, "node": label, ...}`."""
    lay_open(model, [one["node"] for one in rewrites])
    for one in rewrites:
        place = find(model, one["node"])
        if place is not None:
            REWRITES[one["do"]](model, place, one)
    forget_shapes(model)


def zero_masked_rows(model: onnx.ModelProto, edit: ZeroMaskedRows) -> None:
    """Let a softmax over nothing but -inf give zeros, as PyTorch's attention does, in place of NaN."""
    for name in edit.nodes:
        place = find(model, name)
        if place is None:
            continue
        output = place.node.output[0]
        word = infer(model).of.get(output, "float")
        raw = graph.fresh_name(graph.value_names(model), f"{output}/raw")
        place.node.output[0] = raw
        weaver = Weaver(model, place.label)
        zero = weaver.const(0, dtypes.of_text(f"tensor({word})"))
        weaver.op("Where", [weaver.op("IsNaN", [raw]), zero, raw], output=output)
        weaver.after(place.graph, place.node)
    forget_shapes(model)


# --- the rewrites ---------------------------------------------------------------------------------------


def _size(weaver: Weaver, size: Any) -> str:
    """Return the name of a one-element int64 value with that size."""
    if isinstance(size, int):
        return weaver.const([size])
    word, *rest = size
    if word == "size":
        return weaver.op("Gather", [weaver.op("Shape", [rest[0]]), weaver.const([rest[1]])], axis=0)
    if word in ("div", "sub"):
        return weaver.op({"div": "Div", "sub": "Sub"}[word], [_size(weaver, rest[0]), weaver.const([rest[1]])])
    result = _size(weaver, rest[0])
    for factor in rest[1:]:
        result = weaver.op("Mul", [result, _size(weaver, factor)])
    return result


def _shape(weaver: Weaver, sizes: list[Any]) -> str:
    if all(isinstance(s, int) for s in sizes):
        return weaver.const(sizes)
    return weaver.op("Concat", [_size(weaver, s) for s in sizes], axis=0)


def _new_shape(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Give a Reshape, Expand or Split a second input made of sizes, a Resize a fourth."""
    weaver = Weaver(model, place.label)
    place.node.input[int(rewrite.get("input", 1))] = _shape(weaver, list(rewrite["sizes"]))
    weaver.before(place.graph, place.node)
    if place.node.op_type == "Reshape":
        graph.set_attribute(place.node, "allowzero", None)  # 0 stands for "as the input has it"


def _allow_zero(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    graph.set_attribute(place.node, "allowzero", 1)


def _equal_parts(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Split into equal parts, whatever the size."""
    node, count = place.node, len(place.node.output)
    del node.input[1:]
    graph.set_attribute(node, "split", None)
    if (graph.opset(model) or 0) >= 18:
        graph.set_attribute(node, "num_outputs", count)


def _at_most(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Let TopK take at most as many as there are."""
    weaver = Weaver(model, place.label)
    there = _size(weaver, ["size", place.node.input[0], int(rewrite["axis"])])
    place.node.input[1] = weaver.op("Min", [place.node.input[1], there])
    weaver.before(place.graph, place.node)


def _to_the_end(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Let a Slice end where the given numbers say."""
    weaver = Weaver(model, place.label)
    place.node.input[2] = weaver.const(list(rewrite["ends"]))
    weaver.before(place.graph, place.node)


def _drop_inputs(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Leave out optional inputs whose default is what they held."""
    for index in rewrite["inputs"]:
        place.node.input[index] = ""
    while place.node.input and not place.node.input[-1]:
        del place.node.input[-1]


def _constant(model: onnx.ModelProto, place: graph.NodePlace, rewrite: Mapping[str, Any]) -> None:
    """Read, in place of a constant, one made for the sizes at hand: `pattern` says how."""
    weaver = Weaver(model, f"{place.label}/{rewrite['value']}")
    made = PATTERNS[rewrite["pattern"]](weaver, rewrite)
    for index, name in enumerate(place.node.input):
        if name == rewrite["value"]:
            place.node.input[index] = made
    weaver.before(place.graph, place.node)


def _filled(weaver: Weaver, rewrite: Mapping[str, Any]) -> str:
    if all(isinstance(s, int) for s in rewrite["sizes"]):
        dtype = dtypes.of_text(f"tensor({rewrite['type']})")
        return weaver.const(np.full(list(rewrite["sizes"]), _plain(rewrite["fill"]), dtype), dtype)
    return weaver.op("Expand", [_number(weaver, rewrite, rewrite["fill"]), _shape(weaver, list(rewrite["sizes"]))])


def _repeated(weaver: Weaver, rewrite: Mapping[str, Any]) -> str:
    """The same along some axes: the first of them, repeated."""
    axes = list(rewrite["axes"])
    first = weaver.op(
        "Slice", [rewrite["value"], weaver.const([0] * len(axes)), weaver.const([1] * len(axes)), weaver.const(axes)]
    )
    return weaver.op("Expand", [first, _shape(weaver, list(rewrite["sizes"]))])


def _counted(weaver: Weaver, rewrite: Mapping[str, Any]) -> str:
    """first, first + step, ... along one axis."""
    sizes, axis = list(rewrite["sizes"]), int(rewrite["axis"])
    scalar = weaver.op("Squeeze", [_size(weaver, sizes[axis])])
    steps = weaver.op("Range", [weaver.const(0), scalar, weaver.const(1)])
    if rewrite["step"] != 1:
        steps = weaver.op("Mul", [steps, weaver.const(int(rewrite["step"]))])
    if rewrite["first"]:
        steps = weaver.op("Add", [steps, weaver.const(int(rewrite["first"]))])
    shaped = weaver.op("Reshape", [steps, weaver.const([-1 if i == axis else 1 for i in range(len(sizes))])])
    typed = weaver.op("Cast", [shaped], to=dtypes.ENUM[rewrite["type"]])
    others = [1 if i == axis else s for i, s in enumerate(sizes)]
    return typed if all(s == 1 for s in others) else weaver.op("Expand", [typed, _shape(weaver, others)])


def _triangle(weaver: Weaver, rewrite: Mapping[str, Any]) -> str:
    """One value on and on one side of a diagonal of the last two axes, another one beyond: a causal mask."""
    rows, columns = (weaver.op("Squeeze", [_size(weaver, s)]) for s in list(rewrite["sizes"])[-2:])
    zero, one = weaver.const(0), weaver.const(1)
    down = weaver.op("Reshape", [weaver.op("Range", [zero, rows, one]), weaver.const([-1, 1])])
    across = weaver.op("Reshape", [weaver.op("Range", [zero, columns, one]), weaver.const([1, -1])])
    keep = weaver.op("Less", [across, weaver.op("Add", [down, weaver.const(int(rewrite["diagonal"]) + 1)])])
    inside, outside = (_number(weaver, rewrite, rewrite[k]) for k in ("inside", "outside"))
    if rewrite["type"] == "bool":
        mask = keep if rewrite["inside"] else weaver.op("Not", [keep])
    else:
        mask = weaver.op("Where", [keep, inside, outside])
    lead = list(rewrite["sizes"])[:-2]
    return weaver.op("Unsqueeze", [mask, weaver.const(list(range(len(lead))))]) if lead else mask


def _number(weaver: Weaver, rewrite: Mapping[str, Any], value: float) -> str:
    return weaver.const(_plain(value), dtypes.of_text(f"tensor({rewrite['type']})"))


def _plain(value: Any) -> Any:
    """Return a number that was written as JSON can hold it."""
    return {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}.get(str(value), value)


PATTERNS: dict[str, Callable[[Weaver, Mapping[str, Any]], str]] = {
    "filled": _filled,
    "repeated": _repeated,
    "counted": _counted,
    "triangle": _triangle,
}
REWRITES: dict[str, Callable[[onnx.ModelProto, graph.NodePlace, Mapping[str, Any]], None]] = {
    "new-shape": _new_shape,
    "allow-zero": _allow_zero,
    "equal-parts": _equal_parts,
    "at-most": _at_most,
    "drop-inputs": _drop_inputs,
    "to-the-end": _to_the_end,
    "constant": _constant,
}
