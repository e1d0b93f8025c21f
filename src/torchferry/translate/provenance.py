"""The map from the file's node and value names back to the user's source, kept apart from the file: optimisers lose it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import onnx_ir as ir

from torchferry.records import Location
from torchferry.translate import node_lines
from torchferry.whose_code import line_in

STACK = "pkg.torch.onnx.stack_trace"
NOWHERE = Location()
BORROWINGS = 4  # how far a line is passed on: sizes are computed in chains of a few nodes


def provenance(model: ir.Model, prefix: str) -> dict[str, Location]:
    """Return where each node and each value of the graph comes from; those without a line borrow a neighbour's."""
    found = {node: _place(node, prefix) for node in ir.traversal.RecursiveGraphIterator(model.graph)}
    for _ in range(BORROWINGS):
        lost = [node for node, place in found.items() if place.line is None]
        for node in lost:
            near = next((found[other] for other in _neighbours(node) if found.get(other, NOWHERE).line), None)
            if near is not None:
                found[node] = replace(near, op=found[node].op or near.op)
    places: dict[str, Location] = {}
    for node, place in found.items():
        named = replace(place, onnx_node=node.name)
        places[str(node.name)] = named
        places.update({str(value.name): named for value in node.outputs if value.name})
    return places


def _place(node: ir.Node, prefix: str) -> Location:
    if (made_by := node.meta.get("node")) is not None:
        return node_lines.location(made_by, prefix)
    file, line = line_in(node.metadata_props.get(STACK, ""))
    return Location(file=file, line=line)


def _neighbours(node: ir.Node) -> Iterator[ir.Node]:
    """Yield consumers, then producers: a shape computation belongs to what uses it."""
    for value in node.outputs:
        yield from value.consumers()
    for given in node.inputs:
        if given is not None and (producer := given.producer()) is not None:
            yield producer
