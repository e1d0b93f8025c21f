"""Door to torch's own trees of tensors (`torch.utils._pytree`): nested tuples, lists, dicts and what users registered.

Relies on tree_flatten, tree_unflatten, tree_leaves, tree_map and SUPPORTED_NODES, and on arg_tree_leaves (since torch 2.2).
Should they move: `torch.utils._cxx_pytree` and the package optree have the same functions; SUPPORTED_NODES alone, the
table of registered classes, has no twin there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchferry.foreign.moved import relying_on

with relying_on("torch", "its trees of tensors"):
    from torch.utils._pytree import SUPPORTED_NODES, arg_tree_leaves, tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "TREE_MAP",
    "arg_tree_leaves",
    "is_registered",
    "taken_apart",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_unflatten",
]

TREE_MAP = "torch.utils._pytree.tree_map"  # as it is written into a user's function


def is_registered(value: Any) -> bool:
    """Whether a value is of a class that torch knows how to take apart."""
    return type(value) in SUPPORTED_NODES


def taken_apart(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the parts of a value of a registered class, and what makes such a value of other parts."""
    node = SUPPORTED_NODES[type(value)]
    children, context = node.flatten_fn(value)
    return list(children), lambda made: node.unflatten_fn(made, context)
