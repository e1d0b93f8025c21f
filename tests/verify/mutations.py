"""Small wounds to a correct file, of the kinds that exporters and optimisers inflict."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper

Wound = Callable[[onnx.ModelProto, random.Random], bool]  # changes the model in place; False where it found nothing to change


def swap_inputs(model: onnx.ModelProto, chance: random.Random) -> bool:
    """Swap two inputs of an op for which the order matters."""
    node = _pick(model, chance, lambda n: n.op_type in ("Sub", "Div", "Pow", "MatMul", "Where", "Less", "Greater", "Concat"))
    if node is None or len(node.input) < 2:
        return False
    last = len(node.input) - 1
    node.input[last - 1], node.input[last] = node.input[last], node.input[last - 1]
    return True


def other_op(model: onnx.ModelProto, chance: random.Random) -> bool:
    """Put a near relative in an op's place."""
    node = _pick(model, chance, lambda n: n.op_type in _RELATIVES)
    if node is None:
        return False
    node.op_type = _RELATIVES[node.op_type]
    return True


def other_attribute(model: onnx.ModelProto, chance: random.Random) -> bool:
    """Change an axis, an epsilon, a permutation, a stride or a flag."""
    node = _pick(model, chance, lambda n: any(a.name in _ATTRIBUTES for a in n.attribute))
    if node is None:
        return False
    attribute = chance.choice([a for a in node.attribute if a.name in _ATTRIBUTES])
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = attribute.i - 1 if attribute.i else 1
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = attribute.f * 100 if attribute.f < 1e-2 else attribute.f * 0.9
    elif attribute.type == onnx.AttributeProto.INTS and len(attribute.ints) > 1:
        attribute.ints[-1], attribute.ints[-2] = attribute.ints[-2], attribute.ints[-1]
    else:
        return False
    return True


def other_weight(model: onnx.ModelProto, chance: random.Random) -> bool:
    """Transpose a square weight, reverse a vector, or spoil one number of it."""
    weights = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and np.prod(t.dims) > 0]
    if not weights:
        return False
    tensor = chance.choice(weights)
    values = numpy_helper.to_array(tensor).copy()
    if values.ndim == 2 and values.shape[0] == values.shape[1]:
        values = np.ascontiguousarray(values.T)
    elif values.ndim == 1 and values.size > 1 and chance.random() < 0.5:
        values = values[::-1].copy()
    else:
        flat = values.reshape(-1)
        flat[chance.randrange(flat.size)] += 0.5 + np.abs(values).max()
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return True


def other_constant(model: onnx.ModelProto, chance: random.Random) -> bool:
    """Move an integer by one (the bound of a Slice, an index) or a float by a tenth (a scale, an epsilon)."""
    constants = [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    constants = [t for t in constants if 0 < np.prod(t.dims or [1]) <= 8]
    if not constants:
        return False
    tensor = chance.choice(constants)
    values = numpy_helper.to_array(tensor).copy()
    if values.dtype.kind == "b":
        return False
    values = values + 1 if values.dtype.kind in "iu" else values * np.asarray(1.1, values.dtype)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return True


_RELATIVES = {
    "Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Relu": "Softplus", "Tanh": "Erf", "Sigmoid": "Tanh",
    "Erf": "Tanh", "Sqrt": "Abs", "ReduceMean": "ReduceSum", "MaxPool": "AveragePool", "Softmax": "LogSoftmax",
}  # fmt: skip
_ATTRIBUTES = ("axis", "axes", "perm", "epsilon", "alpha", "transA", "transB", "strides", "pads", "keepdims", "group")
WOUNDS: tuple[Wound, ...] = (swap_inputs, other_op, other_attribute, other_weight, other_constant)


def wounded(model: onnx.ModelProto, seed: int) -> onnx.ModelProto | None:
    """Return a copy with one wound, the same for the same seed; None where none took."""
    chance = random.Random(seed)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy if chance.choice(WOUNDS)(copy, chance) else None


def _pick(model: onnx.ModelProto, chance: random.Random, fits: Callable[[onnx.NodeProto], bool]) -> onnx.NodeProto | None:
    nodes = [n for n in model.graph.node if fits(n)]
    return chance.choice(nodes) if nodes else None
