"""Passes that change element types: of an operand, around a node, in a branch, of a declaration, of a whole graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.weave import Weaver, find, forget_shapes, lay_open, rename
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import infer, states
from torchferry.edits.check import CastAround, CastBranches, CastCarried, CastOperands, DeclareTypes, OtherType, Retype


def cast_operands(model: onnx.ModelProto, edit: CastOperands) -> None:
    """Cast the named operands of a node: a constant in place where nobody else reads it, anything else by a Cast."""
    place = find(model, edit.node)
    if place is None:
        return
    to = dtypes.ENUM[edit.to]
    for value in edit.values:
        if not _convert_constant(place.graph, value, to):
            weaver = Weaver(model, f"{place.label}/{value}")
            made = weaver.op("Cast", [value], to=to)
            rename(place.node.input, value, made)
            weaver.before(place.graph, place.node)
    forget_shapes(model)


def _convert_constant(part: Any, value: str, to: int) -> bool:
    if len(graph.readers(part).get(value, ())) != 1:
        return False
    for tensor in getattr(part, "initializer", ()):
        if tensor.name == value and not graph.external(tensor) and (old := graph.array(tensor)) is not None:
            tensor.CopyFrom(onnx.numpy_helper.from_array(old.astype(dtypes.of_text(f"tensor({dtypes.word(to)})")), value))
            kept = [i for i in part.input if i.name != value]
            del part.input[:]
            part.input.extend(kept)
            return True
    return False


def cast_branches(model: onnx.ModelProto, edit: CastBranches) -> None:
    """Cast an output of the branches of an If to one type."""
    place = find(model, edit.node)
    if place is None:
        return
    types, to = infer(model).of, edit.to
    for branch in graph.subgraphs(place.node):
        output = branch.output[edit.index]
        if types.get(output.name) != to:
            weaver = Weaver(model, output.name)
            made = weaver.op("Cast", [output.name], to=dtypes.ENUM[to])
            branch.node.extend(weaver.nodes)
            output.name = made
            output.type.tensor_type.elem_type = dtypes.ENUM[to]
    forget_shapes(model)


def cast_carried(model: onnx.ModelProto, edit: CastCarried) -> None:
    """Let a Loop or Scan carry a value in one type: as it goes in, and as it comes out of a turn."""
    place = find(model, edit.node)
    if place is None:
        return
    word, types, body = edit.to, infer(model).of, next(graph.subgraphs(place.node))
    to = dtypes.ENUM[word]
    outer, inner, result = next(s for s in states(place.node, body) if s[0] == edit.index)
    if types.get(place.node.input[outer]) != word:
        weaver = Weaver(model, place.label)
        place.node.input[outer] = weaver.op("Cast", [place.node.input[outer]], to=to)
        weaver.before(place.graph, place.node)
    body.input[inner].type.tensor_type.elem_type = to
    forget_shapes(model)
    if infer(model).of.get(body.output[result].name) != word:  # anew: what goes in may have been of another type
        weaver = Weaver(model, body.output[result].name)
        body.output[result].name = weaver.op("Cast", [body.output[result].name], to=to)
        body.node.extend(weaver.nodes)
    body.output[result].type.tensor_type.elem_type = to


def cast_around(model: onnx.ModelProto, edit: CastAround) -> None:
    """Cast to a type that has a kernel before each node of a list, and back behind it; the rest keeps its types."""
    lay_open(model, [entry.node for entry in edit.nodes])
    for entry in edit.nodes:
        types = infer(model).of  # anew: an earlier entry may have put Casts in front of this node
        place = find(model, entry.node)
        if place is not None:
            _around(model, place, entry, types)
    forget_shapes(model)


def _around(model: onnx.ModelProto, place: graph.NodePlace, entry: OtherType, types: dict[str, str]) -> None:
    node, old, new = place.node, entry.from_, entry.to
    weaver = Weaver(model, place.label)
    if entry.how == "attribute":
        graph.set_attribute(node, entry.attribute, dtypes.ENUM[new])
    else:
        chosen = entry.inputs or [i for i in node.input if types.get(i) == old]
        cast = {value: weaver.op("Cast", [value], to=dtypes.ENUM[new]) for value in dict.fromkeys(chosen)}
        for index, value in enumerate(node.input):
            if value in cast and (not entry.places or index in entry.places):  # one value may stand in two places
                node.input[index] = cast[value]
        weaver.before(place.graph, node)
    for index, output in enumerate(node.output):
        if output and types.get(output) == old:
            inner = graph.fresh_name(graph.value_names(model), f"{output}/{new}")
            node.output[index] = inner
            weaver.op("Cast", [inner], output=output, to=dtypes.ENUM[old])
    weaver.after(place.graph, node)


def declare_types(model: onnx.ModelProto, edit: DeclareTypes) -> None:
    """Declare each output with the type that its node gives; forget what is said of inner values."""
    forget_shapes(model)
    real = {v: r for v, (_, r, _) in infer(model).declared.items()}
    for part in graph.graphs(model):
        for output in part.output:
            if output.name in real:
                output.type.tensor_type.elem_type = dtypes.ENUM[real[output.name]]


def retype(model: onnx.ModelProto, edit: Retype) -> None:
    """Compute in another type throughout: weights, constants, casts; inputs and outputs keep the type they are declared with."""
    old, new = dtypes.ENUM[edit.from_], dtypes.ENUM[edit.to]
    for tensor in graph.tensors(model):
        if tensor.data_type == old:
            _retype_tensor(tensor, new)
    for place in graph.places(model):
        for attribute in place.node.attribute:
            if attribute.name in ("to", "dtype", "output_datatype", "output_dtype") and attribute.i == old:
                attribute.i = new
    _retype_border(model, old, new)
    for part in graph.graphs(model):
        if part is not model.graph:
            for value in (*part.input, *part.output):
                if value.type.tensor_type.elem_type == old:
                    value.type.tensor_type.elem_type = new
    forget_shapes(model)


def _retype_tensor(tensor: onnx.TensorProto, new: int) -> None:
    if graph.external(tensor):
        raise ValueError(f"the weights of `{tensor.name}` are in another file; load them into the model first")
    values = np.asarray(onnx.numpy_helper.to_array(tensor)).astype(dtypes.of_text(f"tensor({dtypes.word(new)})"))
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def _retype_border(model: onnx.ModelProto, old: int, new: int) -> None:
    """Keep what callers see: a Cast behind each input and before each output of the old type."""
    main = model.graph
    stored = {t.name for t in main.initializer}
    for value in main.input:
        if value.type.tensor_type.elem_type != old:
            continue
        if value.name in stored:
            value.type.tensor_type.elem_type = new
            continue
        weaver = Weaver(model, value.name)
        made = weaver.op("Cast", [value.name], to=new)
        for place in graph.nodes_of(main):
            rename(place.node.input, value.name, made)
        main.node.insert(0, weaver.nodes[0])
    for value in main.output:
        if value.type.tensor_type.elem_type == old:
            inner = graph.fresh_name(graph.value_names(model), f"{value.name}/{dtypes.word(new)}")
            for place in graph.nodes_of(main):
                rename(place.node.input, value.name, inner)
                rename(place.node.output, value.name, inner)
            weaver = Weaver(model, value.name)
            weaver.op("Cast", [inner], output=value.name, to=old)
            main.node.extend(weaver.nodes)
