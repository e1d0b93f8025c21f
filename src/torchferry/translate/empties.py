"""Nodes that compute nothing because a size is zero: replaced by constants, as onnxruntime is unsure about empty tensors."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.torch_operators import aten

MOST = 4096  # elements of a constant that takes the place of a reduction over nothing


def settle(graph: Any) -> bool:
    """Replace nodes whose result is empty, or follows from empty arguments alone, in place; return whether any was."""
    changed = False
    for node in list(graph.nodes):
        if node.op != "call_function" or not _of_interest(node):
            continue
        value = _outcome(node)
        if value is None:
            continue
        node.target = aten.full.default  # in place: outputs are known by their node's name
        node.args = (list(value.shape), value.flatten()[0].item() if value.numel() else 0)
        node.kwargs = {"dtype": value.dtype}
        changed = True
    return changed


def _of_interest(node: Any) -> bool:
    """Whether the node gives one real tensor of fixed size, and is empty or made of nothing but empty tensors."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not _fixed(value) or value.is_complex() or node.target is aten.full.default:
        return False
    if value.numel() == 0:
        return True
    given = [n.meta.get("val") for n in node.all_input_nodes]
    return (
        bool(given) and value.numel() <= MOST and all(isinstance(g, torch.Tensor) and _fixed(g) and g.numel() == 0 for g in given)
    )


def _outcome(node: Any) -> torch.Tensor | None:
    """Return the node's result if it is the same number everywhere, otherwise None."""
    value = node.meta["val"]
    if value.numel() == 0:
        return torch.zeros(tuple(value.shape), dtype=value.dtype)

    def empty(arg: Any) -> Any:
        given = arg.meta["val"]
        return torch.zeros(tuple(given.shape), dtype=given.dtype)

    try:
        result = node.target(*torch.fx.map_arg(node.args, empty), **torch.fx.map_arg(node.kwargs, empty))
    except (RuntimeError, TypeError, IndexError):  # not defined on nothing: leave it to the translation
        return None
    if not isinstance(result, torch.Tensor) or result.shape != value.shape:
        return None
    first = result.flatten()[0]
    return result if bool(((result == first) | (result.isnan() & first.isnan())).all()) else None


def _fixed(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in value.shape)
