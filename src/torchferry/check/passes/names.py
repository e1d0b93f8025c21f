"""Passes that give names: to nodes, to values, and to the files that weights are kept in."""

from __future__ import annotations

import onnx

from torchferry.check.passes.weave import rename
from torchferry.check.reading import external, graph
from torchferry.check.reading.structure import same_work
from torchferry.edits.check import DropRepeatedNodes, RelocateData, RenameOutput, RenameShadowed, UniqueNodeNames


def relocate(model: onnx.ModelProto, edit: RelocateData) -> None:
    """Read weights from where they are."""
    external.relocate(model, dict(edit.moves))


def unique_node_names(model: onnx.ModelProto, edit: UniqueNodeNames) -> None:
    """Give each node that shares its name with an earlier one a name of its own."""
    taken: set[str] = {p.node.name for p in graph.places(model)}
    seen: set[str] = set()
    for place in graph.places(model):
        if place.node.name in seen and place.node.name:
            place.node.name = graph.fresh_name(taken, place.node.name)
        seen.add(place.node.name)


def rename_shadowed(model: onnx.ModelProto, edit: RenameShadowed) -> None:
    """Give values of subgraphs that bear the name of an outer value a name of their own."""
    _rename_in(model.graph, set(), graph.value_names(model))


def _rename_in(part: onnx.GraphProto, outer: set[str], taken: set[str]) -> None:
    visible = outer | _defined(part)
    for node in part.node:
        for subgraph in graph.subgraphs(node):
            for name in sorted(_defined(subgraph) & visible):
                _rename_value(subgraph, name, graph.fresh_name(taken, f"{name}_{subgraph.name or 'inner'}"))
            _rename_in(subgraph, visible, taken)


def _defined(part: onnx.GraphProto) -> set[str]:
    return {v.name for v in (*part.input, *part.initializer)} | {o for n in part.node for o in n.output if o}


def _rename_value(part: onnx.GraphProto, old: str, new: str) -> None:
    """Rename a value that `part` defines, there and in the graphs inside it."""
    for value in (*part.input, *part.output, *part.value_info, *part.initializer):
        if value.name == old:
            value.name = new
    for place in graph.nodes_of(part):
        rename(place.node.input, old, new)
        rename(place.node.output, old, new)


def drop_repeated_nodes(model: onnx.ModelProto, edit: DropRepeatedNodes) -> None:
    """Take away nodes that compute, under the same names, what an earlier node computes already."""
    for part in graph.graphs(model):
        makers: dict[str, onnx.NodeProto] = {}
        for node in list(part.node):
            first = next((makers[o] for o in node.output if o in makers), None)
            if first is not None and same_work(first, node):
                del part.node[max(i for i, n in enumerate(part.node) if n == node)]
            makers.update({o: node for o in node.output if o and o not in makers})


def rename_output(model: onnx.ModelProto, edit: RenameOutput) -> None:
    """Give a value the name under which the graph promises it."""
    old, new = edit.value, edit.output
    for place in graph.nodes_of(model.graph):
        rename(place.node.input, old, new)
        rename(place.node.output, old, new)
