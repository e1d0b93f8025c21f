"""The user's own line behind a node: file, line, module path and operator, read from what torch.export kept."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.torch_operators import OpOverload
from torchferry.records import Location
from torchferry.whose_code import line_in

FLAT = "model."  # where stage 1 puts the user's module


def location(node: Any, prefix: str = FLAT) -> Location:
    """Return where the user's source made an fx node."""
    file, line = line_in(str(node.meta.get("stack_trace") or ""))
    return Location(file=file, line=line, module_path=_module_path(node, prefix), op=operator_name(node))


def operator_name(node: Any) -> str:
    """Return the operator as users know it: "aten::cumprod", "mylib::op", or a Python function's name."""
    target = node.target
    if getattr(target, "namespace", "") == "prims":  # what a decomposition came down to; the user wrote something else
        target = node.meta.get("original_aten") or target
    if isinstance(target, OpOverload):
        return target.name()
    return str(getattr(target, "__name__", target))


def first_dtype(node: Any) -> str:
    """Return the dtype of a node's first tensor argument, as text; empty when it has none."""
    values = [n.meta.get("val") for n in node.all_input_nodes] + [node.meta.get("val")]
    return next((str(v.dtype).removeprefix("torch.") for v in values if isinstance(v, torch.Tensor)), "")


def _module_path(node: Any, prefix: str) -> str | None:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path = list(stack.values())[-1][0]
    return strip(str(path).replace("L['self'].", "").replace("L['self']", ""), prefix) or None


def strip(name: str, prefix: str = FLAT) -> str:
    """Return a state or module name without the place that stage 1 put the user's module in."""
    return name.removeprefix(prefix) if name != prefix.rstrip(".") else ""
