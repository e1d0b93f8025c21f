"""What the ONNX standard says of an operator at an opset, and whether a node is written in that form."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx

STANDARD = ("", "ai.onnx")
NEWEST = onnx.defs.onnx_opset_version()


@cache
def schema(op_type: str, version: int, domain: str = "") -> Any | None:
    """Return the standard's schema of an operator at a version of its domain, or None; a withdrawn one is none."""
    if not 0 < version < 1 << 31:  # a stamp that is no version; the registry takes 32 bits
        return None
    try:
        found = onnx.defs.get_schema(op_type, version, "" if domain in STANDARD else domain)
    except onnx.defs.SchemaError:
        return None
    return found


@cache
def known(op_type: str, domain: str = "") -> bool:
    """Say whether the standard has, or ever had, an operator of that name."""
    return any(s.name == op_type for s in _all() if s.domain == ("" if domain in STANDARD else domain))


@cache
def _all() -> tuple[Any, ...]:
    return tuple(onnx.defs.get_all_schemas_with_history())


def since(op_type: str, version: int, domain: str = "") -> int | None:
    """Return the version since which the operator has had the form that it has at `version`."""
    found = schema(op_type, version, domain)
    return found.since_version if found is not None else None


def misfit(node: onnx.NodeProto, version: int) -> str | None:
    """Return why a node is not valid at an opset, in words; None if it is."""
    found = schema(node.op_type, version, node.domain)
    if found is None:
        return f"`{node.op_type}` is not in opset {version}"
    if found.deprecated:
        return f"`{node.op_type}` was withdrawn in opset {found.since_version}"
    inputs, outputs = _count(node.input), _count(node.output)
    if not found.min_input <= inputs <= found.max_input:
        return f"it has {inputs} inputs, in opset {version} `{node.op_type}` takes {_span(found.min_input, found.max_input)}"
    if not found.min_output <= outputs <= found.max_output:
        return f"it has {outputs} outputs, in opset {version} `{node.op_type}` gives {_span(found.min_output, found.max_output)}"
    if strange := [a.name for a in node.attribute if a.name not in found.attributes]:
        return f"it has the attribute `{strange[0]}`, which `{node.op_type}` has not in opset {version}"
    if lacking := [n for n, a in found.attributes.items() if a.required and n not in {b.name for b in node.attribute}]:
        return f"it lacks the attribute `{lacking[0]}`, which `{node.op_type}` needs in opset {version}"
    return None


def _count(names: Any) -> int:
    """How many inputs or outputs are there; empty ones at the end were left out."""
    return max((i + 1 for i, n in enumerate(names) if n), default=0)


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}" if high < 1 << 20 else f"{low} or more"
