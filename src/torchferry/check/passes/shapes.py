"""Passes that let sizes move: axes freed in the signature, constants that hold an example's sizes computed instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import onnx

from torchferry.check.passes.weave import Weaver, find, forget_shapes, lay_open, rename
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import infer
from torchferry.edits.check import FreeSizes, RewriteConstants, TransposeOperand, ZeroMaskedRows
from torchferry.records.rewrites import (
    AllowZero,
    AtMost,
    Counted,
    Difference,
    DropInputs,
    EqualParts,
    Filled,
    MadeConstant,
    NewShape,
    Number,
    Pattern,
    Product,
    Quotient,
    Repeated,
    SizeOf,
    SizeRewrite,
    Sizes,
    SizeTerm,
    ToTheEnd,
    Triangle,
)


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


def rewrite(model: onnx.ModelProto, rewrites: Sequence[SizeRewrite]) -> None:
    """Carry out rewrites, one after the other."""
    lay_open(model, [one.node for one in rewrites])
    for one in rewrites:
        place = find(model, one.node)
        if place is not None:
            _carry_out(model, place, one)
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


def _carry_out(model: onnx.ModelProto, place: graph.NodePlace, rewrite: SizeRewrite) -> None:
    node, weaver = place.node, Weaver(model, place.label)
    match rewrite:
        case NewShape(sizes=sizes, input=index):
            node.input[index] = _shape(weaver, sizes)
            if node.op_type == "Reshape":
                graph.set_attribute(node, "allowzero", None)  # 0 stands for "as the input has it"
        case AllowZero():
            graph.set_attribute(node, "allowzero", 1)
        case EqualParts():
            del node.input[1:]
            graph.set_attribute(node, "split", None)
            if (graph.opset(model) or 0) >= 18:
                graph.set_attribute(node, "num_outputs", len(node.output))
        case AtMost(axis=axis):
            node.input[1] = weaver.op("Min", [node.input[1], _size(weaver, SizeOf(node.input[0], axis))])
        case ToTheEnd(ends=ends):
            node.input[2] = weaver.const(list(ends))
        case DropInputs(inputs=inputs):
            for index in inputs:
                node.input[index] = ""
            while node.input and not node.input[-1]:
                del node.input[-1]
        case MadeConstant(value=value, pattern=pattern):
            weaver = Weaver(model, f"{place.label}/{value}")
            made = _made(weaver, value, pattern)
            rename(node.input, value, made)
    weaver.before(place.graph, node)


def _size(weaver: Weaver, size: SizeTerm) -> str:
    """Return the name of a one-element int64 value with that size."""
    match size:
        case SizeOf(value=value, axis=axis):
            return weaver.op("Gather", [weaver.op("Shape", [value]), weaver.const([axis])], axis=0)
        case Product(factors=factors):
            return reduce(lambda a, b: weaver.op("Mul", [a, b]), (_size(weaver, f) for f in factors))
        case Quotient(size=whole, by=by):
            return weaver.op("Div", [_size(weaver, whole), weaver.const([by])])
        case Difference(size=whole, by=by):
            return weaver.op("Sub", [_size(weaver, whole), weaver.const([by])])
        case _:
            return weaver.const([size])


def _shape(weaver: Weaver, sizes: Sizes) -> str:
    if all(isinstance(s, int) for s in sizes):
        return weaver.const(list(sizes))
    return weaver.op("Concat", [_size(weaver, s) for s in sizes], axis=0)


def _made(weaver: Weaver, value: str, pattern: Pattern) -> str:
    """Return the name of a constant made for the sizes at hand, where `value` is the one of the example's."""
    match pattern:
        case Filled():
            return _filled(weaver, pattern)
        case Repeated(sizes=sizes, axes=axes):
            zeros, ones = weaver.const([0] * len(axes)), weaver.const([1] * len(axes))
            first = weaver.op("Slice", [value, zeros, ones, weaver.const(list(axes))])
            return weaver.op("Expand", [first, _shape(weaver, sizes)])
        case Counted():
            return _counted(weaver, pattern)
        case Triangle():
            return _triangle(weaver, pattern)


def _filled(weaver: Weaver, made: Filled) -> str:
    if all(isinstance(s, int) for s in made.sizes):
        dtype = dtypes.of_text(f"tensor({made.type})")
        return weaver.const(np.full(made.sizes, _plain(made.fill), dtype), dtype)  # type: ignore[arg-type]  # they are numbers
    return weaver.op("Expand", [_number(weaver, made.type, made.fill), _shape(weaver, made.sizes)])


def _counted(weaver: Weaver, made: Counted) -> str:
    sizes, axis = made.sizes, made.axis
    scalar = weaver.op("Squeeze", [_size(weaver, sizes[axis])])
    steps = weaver.op("Range", [weaver.const(0), scalar, weaver.const(1)])
    if made.step != 1:
        steps = weaver.op("Mul", [steps, weaver.const(made.step)])
    if made.first:
        steps = weaver.op("Add", [steps, weaver.const(made.first)])
    shaped = weaver.op("Reshape", [steps, weaver.const([-1 if i == axis else 1 for i in range(len(sizes))])])
    typed = weaver.op("Cast", [shaped], to=dtypes.ENUM[made.type])
    others = tuple(1 if i == axis else s for i, s in enumerate(sizes))
    return typed if all(s == 1 for s in others) else weaver.op("Expand", [typed, _shape(weaver, others)])


def _triangle(weaver: Weaver, made: Triangle) -> str:
    rows, columns = (weaver.op("Squeeze", [_size(weaver, s)]) for s in made.sizes[-2:])
    zero, one = weaver.const(0), weaver.const(1)
    down = weaver.op("Reshape", [weaver.op("Range", [zero, rows, one]), weaver.const([-1, 1])])
    across = weaver.op("Reshape", [weaver.op("Range", [zero, columns, one]), weaver.const([1, -1])])
    keep = weaver.op("Less", [across, weaver.op("Add", [down, weaver.const(made.diagonal + 1)])])
    if made.type == "bool":
        mask = keep if made.inside else weaver.op("Not", [keep])
    else:
        mask = weaver.op("Where", [keep, *(_number(weaver, made.type, value) for value in (made.inside, made.outside))])
    lead = len(made.sizes) - 2
    return weaver.op("Unsqueeze", [mask, weaver.const(list(range(lead)))]) if lead else mask


def _number(weaver: Weaver, word: str, value: Number) -> str:
    return weaver.const(_plain(value), dtypes.of_text(f"tensor({word})"))


def _plain(value: Number) -> float:
    """Return a number that was written as JSON can hold it."""
    return float(value) if isinstance(value, str) else value
