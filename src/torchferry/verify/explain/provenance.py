"""From an ONNX node to the user's line: the exporter's map where there is one, else what the node itself carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchferry.records import Location
from torchferry.whose_code import line_in


def place_of_node(node: Any, provenance: Mapping[str, Location]) -> Location:
    """Return the place in the source that a node was made from, as far as it is known."""
    for name in (node.name, *node.output):
        if name in provenance:
            return provenance[name]
    carried = {p.key: p.value for p in node.metadata_props}
    place = _last_user_line(carried.get("pkg.torch.onnx.stack_trace", ""))
    return place or Location(module_path=_path_in_name(node.name), op=node.op_type, onnx_node=node.name)


def _last_user_line(trace: str) -> Location | None:
    file, line = line_in(trace)
    return Location(file, line) if file is not None else None


def _path_in_name(name: str) -> str | None:
    """Return the module path that the old exporter writes into a node's name: `/enc/layers.0/MatMul`."""
    parts = [p for p in name.split("/") if p]
    return ".".join(parts[:-1]) or None if name.startswith("/") else None
