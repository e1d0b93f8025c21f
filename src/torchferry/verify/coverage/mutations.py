"""The mutants of a file: single nodes with inputs swapped, signs and axes changed, constants and weights moved, or left out.

What is known to change nothing is not made: a sum with zeros turned into a difference, inputs swapped that are one and the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from torchferry.verify.arrays import Array, is_float
from torchferry.verify.coverage.schemata import Mutant
from torchferry.verify.coverage.stored import graphs
from torchferry.verify.coverage.weights import HANDFUL

Nodes = tuple[onnx.NodeProto, ...]
Maker = Callable[[onnx.NodeProto, Mapping[str, Array], Mapping[str, Array]], Iterator[tuple[str, Nodes]]]
ORDERED = ("Sub", "Div", "Pow", "Mod", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "MatMul", "Where", "Concat")
RELATIVES = {
    "Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Max": "Min", "Min": "Max", "And": "Or", "Or": "And", "Sin": "Cos",
    "Cos": "Sin", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Erf": "Tanh", "Floor": "Ceil", "Ceil": "Floor", "Round": "Floor",
    "ReduceMean": "ReduceSum", "ReduceSum": "ReduceMean", "ReduceMax": "ReduceMin", "ReduceMin": "ReduceMax",
    "ArgMax": "ArgMin", "ArgMin": "ArgMax", "Softmax": "LogSoftmax", "Relu": "Softplus", "Less": "LessOrEqual",
    "LessOrEqual": "Less", "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Exp": "Softplus", "Sqrt": "Abs",
}  # fmt: skip
FRACTIONS = ("epsilon", "alpha", "beta", "gamma", "lambd", "bias", "size", "spatial_scale", "cubic_coeff_a", "scale")
FLAGS = (
    "largest", "exclusive", "reverse", "keepdims", "select_last_index", "count_include_pad", "ceil_mode", "linear_before_reset",
)  # fmt: skip
WORDS = {
    "direction": {"forward": "reverse", "reverse": "forward", "LEFT": "RIGHT", "RIGHT": "LEFT"},
    "approximate": {"none": "tanh", "tanh": "none"},
    "mode": {"linear": "nearest", "cubic": "linear", "nearest": "linear", "bilinear": "nearest", "reflect": "edge"},
    "coordinate_transformation_mode": {"half_pixel": "asymmetric", "asymmetric": "half_pixel", "align_corners": "half_pixel"},
    "reduction": {"add": "mul", "mul": "add", "none": "add", "max": "min", "min": "max"},
}
STILL = ("Identity", "Dropout", "Cast", "CastLike", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Shape", "Constant")
AXES = ("Squeeze", "Unsqueeze")  # another axis than theirs is refused when the file is loaded
UNENDING = 2**31 - 1  # "to the end": one more or less is the same


def mutants(model: onnx.ModelProto, values: Mapping[str, Array], weights: Mapping[str, Array], seed: int) -> list[Mutant]:
    """Return every mutant of the file's nodes; `values` are those of one run, `weights` what the file holds.

    Of values in nested graphs no run tells; they are of the dtype and rank that can be inferred.
    """
    chance = random.Random(seed)
    known = {**_inferred(model), **values}
    found = []
    for place, graph in graphs(model.graph):
        for node in graph.node:
            if node.op_type in ("Constant", "Identity", "Shape") or any(a.HasField("g") for a in node.attribute):
                continue
            if node.domain not in ("", "ai.onnx") or not all(o in known for o in node.output[:1]):
                continue
            made = [m for maker in MAKERS for m in maker(node, known, weights)]
            found += [Mutant(what, node.output[0], place, node.name or node.op_type, nodes) for what, nodes in made]
            found += [replace(m, graph=place) for m in _weights(node, weights, chance)]
    return found


def _inferred(model: onnx.ModelProto) -> dict[str, Array]:
    """Return an empty array, of the right dtype and rank, for every value in nested graphs of which these can be inferred."""
    nested = [place for place, _ in graphs(model.graph) if place]
    if not nested:
        return {}
    found = {}
    for place, graph in graphs(onnx.shape_inference.infer_shapes(model).graph):
        for value in (*graph.value_info, *graph.output) if place else ():
            kind = value.type.tensor_type
            if kind.elem_type and kind.HasField("shape"):
                found[value.name] = np.empty([0] * len(kind.shape.dim), helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return found


def _copy(node: onnx.NodeProto, **changes: str) -> onnx.NodeProto:
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _swapped(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    if node.op_type not in ORDERED or len(node.input) < 2 or len(set(node.input[-2:])) < 2:
        return
    shapes = {a.shape[-2:] if (a := values.get(n, weights.get(n))) is not None else () for n in node.input[-2:]}
    if node.op_type == "MatMul" and not (len(shapes) == 1 and len(set(*shapes)) == 1):
        return  # only square ones can be swapped
    made = _copy(node)
    made.input[-2], made.input[-1] = node.input[-1], node.input[-2]
    yield "inputs swapped", (made,)


def _relative(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    other = RELATIVES.get(node.op_type)
    if other is None or _with_nothing(node, weights):
        return
    first = values.get(node.input[0], weights.get(node.input[0]))
    if node.op_type == "Mul" and first is not None and not is_float(first):
        return  # whole numbers divided by zero end the process
    if node.op_type in ("Exp", "Sqrt", "Relu", "Softmax", "Tanh", "Sigmoid", "Erf") and (first is None or not is_float(first)):
        return
    yield f"{other} for {node.op_type}", (_copy(node, op_type=other),)


def _with_nothing(node: onnx.NodeProto, weights: Mapping[str, Array]) -> bool:
    """Return whether a node adds zeros, or multiplies with ones: a bias that was never trained."""
    neutral = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}.get(node.op_type)
    return neutral is not None and any(bool((weights[n] == neutral).all()) for n in node.input if n in weights)


def _negated(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    result = values[node.output[0]]
    if len([o for o in node.output if o]) > 1 or not (is_float(result) or result.dtype.kind == "b"):
        return
    made = _copy(node)
    made.output[0] = f"{node.output[0]}.plain"
    turned = "Not" if result.dtype.kind == "b" else "Neg"
    yield "inverted" if turned == "Not" else "negated", (made, helper.make_node(turned, [made.output[0]], [node.output[0]]))


def _dropped(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    result = values[node.output[0]]
    if node.op_type in STILL or len([o for o in node.output if o]) > 1 or _with_nothing(node, weights):
        return
    for name in node.input[:2]:
        given = values.get(name)
        if given is not None and given.size and given.shape == result.shape and given.dtype == result.dtype:
            yield "left out", (helper.make_node("Identity", [name], [node.output[0]]),)
            return


def _attributes(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    first = values.get(node.input[0], weights.get(node.input[0])) if node.input else None
    for place, attribute in enumerate(node.attribute):
        if attribute.name == "cubic_coeff_a" and not any(a.name == "mode" and a.s == b"cubic" for a in node.attribute):
            continue  # no other mode looks at it
        made = _copy(node)
        changed = made.attribute[place]
        match attribute.name:
            case name if name in FRACTIONS and attribute.type == onnx.AttributeProto.FLOAT:
                changed.f = attribute.f * 10 if name == "epsilon" else attribute.f * 1.25 + (0.1 if attribute.f == 0 else 0.0)
            case name if name in FLAGS and attribute.type == onnx.AttributeProto.INT:
                changed.i = 1 - attribute.i
            case "axis" if first is not None and first.ndim > 1:
                changed.i = (attribute.i + 1) % first.ndim
            case "perm" if len(attribute.ints) > 1:
                changed.ints[-1], changed.ints[-2] = attribute.ints[-2], attribute.ints[-1]
            case "strides" | "dilations" | "kernel_shape" if len(set(attribute.ints)) > 1:
                changed.ints[-1], changed.ints[-2] = attribute.ints[-2], attribute.ints[-1]
            case "pads" if any(attribute.ints):
                half = len(attribute.ints) // 2
                changed.ints[0], changed.ints[half] = attribute.ints[0] + 1, max(0, attribute.ints[half] - 1)
            case name if attribute.type == onnx.AttributeProto.STRING and attribute.s.decode() in WORDS.get(name, {}):
                changed.s = WORDS[name][attribute.s.decode()].encode()
            case _:
                continue
        yield f"{attribute.name} changed", (made,)


def _constants(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> Iterator[tuple[str, Nodes]]:
    """Yield a node with one number of a small constant moved: a whole one by one, a fraction by a tenth."""
    if all(name in weights for name in node.input if name):
        return  # what is made of constants alone has sizes that are known, and checked, when the file is loaded
    for place, name in enumerate(node.input):
        held = weights.get(name)
        if held is None or not 0 < held.size <= HANDFUL or held.dtype.kind not in "iuf" or node.op_type in AXES:
            continue
        moved = held.copy().reshape(-1)
        if moved.dtype.kind in "iu":
            if abs(int(moved[-1])) >= UNENDING:
                continue
            moved[-1] += 1
        elif not np.isfinite(moved[-1]) or abs(float(moved[-1])) > 1e30:
            continue
        else:
            moved[-1] = moved[-1] * 1.1 if moved[-1] != 0 else 0.1
        other = f"{name}.moved"
        made = _copy(node)
        made.input[place] = other
        tensor = numpy_helper.from_array(moved.reshape(held.shape), other)
        yield "constant moved", (helper.make_node("Constant", [], [other], value=tensor), made)


MAKERS: tuple[Maker, ...] = (_swapped, _relative, _negated, _dropped, _attributes, _constants)


def _weights(node: onnx.NodeProto, weights: Mapping[str, Array], chance: random.Random) -> Iterator[Mutant]:
    """Yield a node with one number, and one with one row, of a weight that it takes changed."""
    for slot, name in enumerate(node.input):
        held = weights.get(name)
        if held is None or held.size <= HANDFUL or not is_float(held):
            continue
        yield _element_mutant(node, slot, held, tuple(chance.randrange(s) for s in held.shape))
        if held.ndim > 1:
            yield row_mutant(node, slot, held, 0, chance.randrange(held.shape[0]))


def _element_mutant(node: onnx.NodeProto, slot: int, held: Array, at: tuple[int, ...]) -> Mutant:
    """Return a node that sees one of its weights with one number moved by about as much as they spread."""
    name = node.input[slot]
    index, value = np.asarray([at], np.int64), (held[at] + np.asarray(_scale(held), held.dtype)).reshape(1).astype(held.dtype)
    where = helper.make_node("Constant", [], [f"{name}.at"], value=numpy_helper.from_array(index))
    number = helper.make_node("Constant", [], [f"{name}.to"], value=numpy_helper.from_array(value))
    put = helper.make_node("ScatterND", [name, f"{name}.at", f"{name}.to"], [f"{name}.moved"])
    made = _copy(node)
    made.input[slot] = f"{name}.moved"
    return Mutant("one weight moved", node.output[0], "", node.name or node.op_type, (where, number, put, made), name)


def row_mutant(node: onnx.NodeProto, slot: int, held: Array, axis: int, index: int) -> Mutant:
    """Return a node that sees one of its weights with a row along an axis moved, up and down, by about as much as it spreads."""
    name, made = node.input[slot], _copy(node)
    made.input[slot] = f"{name}.moved"
    along, across = [1] * held.ndim, list(held.shape)
    along[axis], across[axis] = held.shape[axis], 1
    chosen = (np.arange(held.shape[axis]) == index).reshape(along)
    step = np.random.default_rng(index).choice([-1, 1], size=across) * (_scale(held) if is_float(held) else 1)
    nodes = [*_added(name, chosen, step, held.dtype), made]
    return Mutant("one row changed", node.output[0], "", node.name or node.op_type, tuple(nodes), name)


def _scale(held: Array) -> float:
    numbers = held.astype(np.float64)
    finite = numbers[np.abs(np.nan_to_num(numbers, nan=np.inf)) < 1e30]
    return float(finite.std()) or 1.0 if finite.size else 1.0


def _added(name: str, chosen: Array, step: Array, dtype: np.dtype[np.generic]) -> list[onnx.NodeProto]:
    """Return nodes that add a step to a weight where it is chosen, in a dtype that can be added in."""

    def held(what: str, values: Array) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [f"{name}.{what}"], value=numpy_helper.from_array(values))

    if dtype.kind == "b":
        return [held("by", chosen), helper.make_node("Xor", [name, f"{name}.by"], [f"{name}.moved"])]
    addable = dtype.name in ("float32", "float64", "int32", "int64")
    via = dtype if addable else np.dtype("int32" if dtype.kind in "iu" else "float32")
    kinds = [helper.np_dtype_to_tensor_dtype(d) for d in (via, dtype)]
    return [
        held("where", chosen.astype(via)),
        held("step", step.astype(via)),
        helper.make_node("Mul", [f"{name}.where", f"{name}.step"], [f"{name}.by"]),
        helper.make_node("Cast", [name], [f"{name}.wide"], to=kinds[0]),
        helper.make_node("Add", [f"{name}.wide", f"{name}.by"], [f"{name}.total"]),
        helper.make_node("Cast", [f"{name}.total"], [f"{name}.moved"], to=kinds[1]),
    ]
