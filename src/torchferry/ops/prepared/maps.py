"""torch's `map` over the first axis, as a scan that carries nothing: ONNX has an operator for that."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import fx

from torchferry.foreign.torch_operators import aten


def is_used(program: Any) -> bool:
    """Whether a program has a `map` in it."""
    return any(_is_map(node) for node in program.graph.nodes)


def revise(program: Any) -> Any:
    """Return the program with its maps as scans; it is changed itself."""
    owner = program.graph_module
    for node in [n for n in owner.graph.nodes if _is_map(n)]:
        _replace(owner, node)
    owner.graph.lint()
    owner.recompile()
    return program


def _is_map(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "map_impl"


def _replace(owner: fx.GraphModule, node: fx.Node) -> None:
    body, items, given = node.args
    graph = owner.graph
    carrying = _carrying(getattr(owner, str(body.target)))  # type: ignore[union-attr]
    name = f"{body.target}_as_scan"  # type: ignore[union-attr]
    setattr(owner, name, carrying)
    results = node.meta["val"]
    with graph.inserting_before(node):
        part = graph.get_attr(name)
        nothing = graph.call_function(aten.full.default, ([], 0.0))
        nothing.meta["val"] = next(r for r in results if isinstance(r, torch.Tensor)).new_zeros(())
        scan = graph.call_function(torch.ops.higher_order.scan, (part, [nothing], list(items), tuple(given)))  # type: ignore[arg-type]
        scan.meta = {**node.meta, "val": (nothing.meta["val"], *results)}
    for user in list(node.users):
        if user.target is operator.getitem:
            user.args = (scan, user.args[1] + 1)  # type: ignore[operator]
    graph.erase_node(node)


def _carrying(body: fx.GraphModule) -> fx.GraphModule:
    """Return the body with a first input that it hands on."""
    new = copy.deepcopy(body)
    first = next(iter(new.graph.nodes))
    with new.graph.inserting_before(first):
        carry = new.graph.placeholder("carried")
    output = next(iter(reversed(new.graph.nodes)))
    value = next(r for r in output.args[0] if isinstance(r, fx.Node)).meta["val"].new_zeros(())  # type: ignore[union-attr]
    carry.meta["val"] = value
    with new.graph.inserting_before(output):
        kept = new.graph.call_function(aten.clone.default, (carry,))
    kept.meta["val"] = value
    output.args = ((kept, *output.args[0]),)  # type: ignore[misc]
    new.recompile()
    return new
