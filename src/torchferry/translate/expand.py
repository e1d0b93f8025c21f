"""A few operators written out in place, each traced by itself: much cheaper than tracing the whole program again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

aten = torch.ops.aten


class NotHere(Exception):
    """A node that cannot be written out by itself; the whole program must be traced again."""


def expand(graph: Any, nodes: list[Any], table: Mapping[Any, Callable[..., Any]]) -> None:
    """Replace the nodes by what they are made of, in place; raise NotHere where that takes more than the node itself."""
    mode = torch._guards.detect_fake_mode([n.meta.get("val") for n in graph.nodes])
    if mode is None:
        raise NotHere("the program has no stand-in tensors")
    for node in nodes:
        leaves, spec = pytree.tree_flatten((list(node.args), dict(node.kwargs)))
        _splice(graph, node, leaves, _traced(node, leaves, spec, table, mode))


def _traced(node: Any, leaves: list[Any], spec: Any, table: Mapping[Any, Callable[..., Any]], mode: Any) -> Any:
    """Return the node's own computation as a graph over its tensor and size arguments."""
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    function = table.get(node.target, node.target)

    def call(*values: Any) -> Any:
        filled = list(leaves)
        for index, value in zip(at, values, strict=True):
            filled[index] = value
        args, kwargs = pytree.tree_unflatten(filled, spec)
        result = function(*args, **kwargs)
        return node.target(*args, **kwargs) if result is NotImplemented else result

    try:
        with mode, torch.no_grad(), torch.fx.experimental._config.patch(backed_size_oblivious=True):
            made = make_fx(call, decomposition_table=dict(table), _allow_non_fake_inputs=True)(
                *(leaves[i].meta["val"] for i in at)
            )
    except Exception as error:  # torch raises anything here; the slower way raises it again, with the user's line
        raise NotHere(str(error)) from error
    for inner in made.graph.nodes:
        schema = getattr(inner.target, "_schema", None)
        if inner.op not in ("placeholder", "call_function", "output") or (schema is not None and schema.is_mutable):
            raise NotHere(f"{node.target} comes down to {inner.target}")
    return made.graph


def _splice(graph: Any, node: Any, leaves: list[Any], inside: Any) -> None:
    """Put the nodes of `inside` before `node`, and let it, or its parts, hand on their results."""
    known: dict[Any, Any] = {}
    given = iter([leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)])
    result: Any = None
    for inner in inside.nodes:
        if inner.op == "placeholder":
            known[inner] = next(given)
        elif inner.op == "output":
            result = torch.fx.map_arg(inner.args[0], known.__getitem__)
        else:
            with graph.inserting_before(node):
                known[inner] = graph.node_copy(inner, known.__getitem__)
            known[inner].meta.update({k: v for k, v in node.meta.items() if k not in ("val", "tensor_meta")})
    if isinstance(result, torch.fx.Node):
        _hand_on(node, result)
        return
    for user in list(node.users):
        if user.target is not operator.getitem or not isinstance(result[user.args[1]], torch.fx.Node):
            raise NotHere(f"{node.target} gives more than tensors")
        _hand_on(user, result[user.args[1]])
    graph.erase_node(node)


def _hand_on(node: Any, result: Any) -> None:
    """Let a node give what another one computed, under its own name: outputs are known by it."""
    if not isinstance(node.meta.get("val"), torch.Tensor):
        raise NotHere(f"{node.target} gives no tensor")
    node.target, node.args, node.kwargs = aten.clone.default, (result,), {}
