"""Models broken by field, not by byte: what comes out is a protobuf that parses, and a model that lies about itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import onnx

NUMBERS = (0, 1, -1, 2, 7, 255, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63))
NAMES = ("", "x", "y", "\u00e9", "a" * 300, "../../etc/passwd", "0", "model.onnx")
OPERATORS = ("Relu", "Loop", "If", "Scan", "Reshape", "Gather", "Resize", "Nonsense", "ATen", "Attention", "SequenceAt", "Cast")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return a model with one to three fields changed."""
    model = onnx.load_model_from_string(data)
    for _ in range(chance.randint(1, 3)):
        chance.choice(WAYS)(model, chance)
    return bytes(model.SerializeToString())


def _node(model: onnx.ModelProto, chance: random.Random) -> Any:
    return chance.choice(model.graph.node) if model.graph.node else onnx.NodeProto()


def _tensor(model: onnx.ModelProto, chance: random.Random) -> Any:
    stored = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    return chance.choice(stored) if stored else onnx.TensorProto()


def _value(model: onnx.ModelProto, chance: random.Random) -> Any:
    return chance.choice([*model.graph.input, *model.graph.output, *model.graph.value_info])


def _rewire(model: onnx.ModelProto, chance: random.Random) -> None:
    node = _node(model, chance)
    names = chance.choice((node.input, node.output))
    others = [*NAMES, *(o for n in model.graph.node for o in n.output), *(t.name for t in model.graph.initializer)]
    if names:
        names[chance.randrange(len(names))] = chance.choice(others)


def _drop_edge(model: onnx.ModelProto, chance: random.Random) -> None:
    names = chance.choice((_node(model, chance).input, _node(model, chance).output))
    if names:
        del names[chance.randrange(len(names))]


def _operator(model: onnx.ModelProto, chance: random.Random) -> None:
    node = _node(model, chance)
    node.op_type = chance.choice((*OPERATORS, *(n.op_type for n in model.graph.node)))
    node.domain = chance.choice((node.domain, "", "com.microsoft", "own", "ai.onnx.ml"))


def _attribute(model: onnx.ModelProto, chance: random.Random) -> None:
    node = _node(model, chance)
    if not node.attribute or chance.random() < 0.2:
        node.attribute.append(onnx.helper.make_attribute(chance.choice(("axis", "to", "value", "perm", "k")), 99))
        return
    attribute = chance.choice(node.attribute)
    match chance.randrange(6):
        case 0:
            attribute.i = chance.choice(NUMBERS)
        case 1:
            attribute.type = chance.randrange(15)
        case 2:
            attribute.name = chance.choice(NAMES)
        case 3:
            attribute.ints[:] = [chance.choice(NUMBERS) for _ in range(chance.randrange(6))]
        case 4:
            attribute.ref_attr_name = chance.choice(NAMES)
        case _:
            node.attribute.remove(attribute)


def _dims(model: onnx.ModelProto, chance: random.Random) -> None:
    tensor = _tensor(model, chance)
    if tensor.dims and chance.random() < 0.7:
        tensor.dims[chance.randrange(len(tensor.dims))] = chance.choice(NUMBERS)
    else:
        tensor.dims.append(chance.choice(NUMBERS))


def _element_type(model: onnx.ModelProto, chance: random.Random) -> None:
    if chance.random() < 0.5:
        _tensor(model, chance).data_type = chance.randrange(40)
    else:
        _value(model, chance).type.tensor_type.elem_type = chance.randrange(40)


def _shape(model: onnx.ModelProto, chance: random.Random) -> None:
    dims = _value(model, chance).type.tensor_type.shape.dim
    if dims and chance.random() < 0.7:
        dim = chance.choice(dims)
        if chance.random() < 0.5:
            dim.dim_value = chance.choice(NUMBERS)
        else:
            dim.dim_param = chance.choice((*NAMES, "a + b", "1/0", "__import__('os')", "a**a**a"))
    else:
        dims.add().dim_value = chance.choice(NUMBERS)


def _raw(model: onnx.ModelProto, chance: random.Random) -> None:
    tensor = _tensor(model, chance)
    raw = tensor.raw_data
    tensor.raw_data = chance.choice((b"", raw[:-1], raw + b"\xff", bytes(len(raw)), b"\xff" * len(raw)))


def _data_file(model: onnx.ModelProto, chance: random.Random) -> None:
    tensor = _tensor(model, chance)
    entries = tensor.external_data
    if not entries:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entries.add(key="location", value=chance.choice(("model.onnx.data", "/etc/passwd", "../up", "C:\\x", "", "a\0b")))
        return
    entry = chance.choice(entries)
    entry.value = chance.choice((*(str(n) for n in NUMBERS), *NAMES, "/dev/zero", "model.onnx", "."))


def _stamps(model: onnx.ModelProto, chance: random.Random) -> None:
    if chance.random() < 0.4 or not model.opset_import:
        model.ir_version = chance.choice(NUMBERS)
    else:
        chance.choice(model.opset_import).version = chance.choice((*NUMBERS, 6, 9, 11, 13, 21, 28))


def _nodes(model: onnx.ModelProto, chance: random.Random) -> None:
    nodes = model.graph.node
    if not nodes:
        return
    match chance.randrange(3):
        case 0:
            del nodes[chance.randrange(len(nodes))]
        case 1:
            nodes.append(chance.choice(nodes))
        case _:
            copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
            chance.shuffle(copies)
            del nodes[:]
            nodes.extend(copies)


def _border(model: onnx.ModelProto, chance: random.Random) -> None:
    values = chance.choice((model.graph.input, model.graph.output, model.graph.initializer))
    if not values:
        return
    match chance.randrange(3):
        case 0:
            del values[chance.randrange(len(values))]
        case 1:
            values.append(chance.choice(values))
        case _:
            chance.choice(values).name = chance.choice(NAMES)


def _nested(model: onnx.ModelProto, chance: random.Random) -> None:
    """Put a copy of the whole graph into a node's attribute: subgraphs where none belong, names that shadow."""
    if len(model.graph.node) < 20:
        node = _node(model, chance)
        body = onnx.GraphProto.FromString(model.graph.SerializeToString())
        node.attribute.append(onnx.helper.make_attribute(chance.choice(("body", "then_branch", "else_branch")), body))


WAYS: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    *(_rewire, _drop_edge, _operator, _attribute, _attribute, _dims, _element_type, _shape),
    *(_raw, _data_file, _stamps, _nodes, _border, _nested),
)
