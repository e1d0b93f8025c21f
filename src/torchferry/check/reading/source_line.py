"""From a node back to the line of PyTorch that it came from, as far as the exporter left word of it."""

from __future__ import annotations

import ast
from dataclasses import replace

import onnx

from torchferry.check.reading import graph
from torchferry.records import Finding, Location
from torchferry.whose_code import line_in

LONGEST = 10_000  # characters of a list of scopes; a longer one was not written by an exporter


def of(node: onnx.NodeProto) -> Location | None:
    """Return the source line and module of a node, or None if it says nothing."""
    kept = {p.key: p.value for p in node.metadata_props if isinstance(p.value, str)}  # in a damaged file it may be any bytes
    file, line = line_in(kept.get("pkg.torch.onnx.stack_trace", ""))
    scopes = _scopes(kept.get("pkg.torch.onnx.name_scopes", ""))
    if file is None and not scopes:
        return None
    return Location(file=file, line=line, module_path=scopes)


def _scopes(text: str) -> str | None:
    try:
        names = ast.literal_eval(text) if len(text) < LONGEST else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # the last two for text that nests too deeply
        return None
    inner = [n for n in names if isinstance(n, str) and n][:-1] if isinstance(names, list) else []
    return inner[-1] if inner else None


def located(model: onnx.ModelProto, found: list[Finding]) -> list[Finding]:
    """Return the findings with source lines added, where their node or a neighbour of it has one."""
    if not found:
        return []
    by_label = {p.label: p for p in graph.places(model)}
    return [_located(f, by_label.get(f.location.onnx_node or "") if f.location else None) for f in found]


def _located(finding: Finding, place: graph.NodePlace | None) -> Finding:
    if place is None or finding.location is None or finding.location.line is not None:
        return finding
    known = of(place.node) or next((w for n in _neighbours(place) if (w := of(n)) is not None), None)
    if known is None:
        return finding
    return replace(finding, location=replace(finding.location, file=known.file, line=known.line, module_path=known.module_path))


def _neighbours(place: graph.NodePlace) -> list[onnx.NodeProto]:
    """Return the nodes that read what a node makes, then those that make what it reads: plumbing has no line of its own."""
    readers = graph.readers(place.graph)
    makers = graph.makers(place.graph)
    return [r for o in place.node.output for r in readers.get(o, ())] + [makers[i] for i in place.node.input if i in makers]
