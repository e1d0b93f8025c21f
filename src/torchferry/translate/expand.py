"""A few operators written out in place, each traced by itself: much cheaper than tracing the whole program again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from torchferry.foreign import torch_tracing
from torchferry.foreign.torch_operators import aten, is_mutable
from torchferry.foreign.torch_shapes import zero_and_one_as_others
from torchferry.foreign.torch_tracing import detect_fake_mode, enable_python_dispatcher, is_fake
from torchferry.foreign.torch_trees import tree_flatten, tree_unflatten

Table = Mapping[Any, Callable[..., Any]]


class NotHere(Exception):
    """A node that cannot be written out by itself; the whole program must be traced again."""


def expand(graph: Any, nodes: list[Any], table: Table) -> None:
    """Replace the nodes by what they are made of, in place; raise NotHere where that takes more than the node itself."""
    mode = mode_of(graph)
    for node in nodes:
        leaves, spec = tree_flatten((list(node.args), dict(node.kwargs)))
        given = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]
        if any("val" not in leaf.meta for leaf in given):
            raise NotHere(f"{node.target} takes a graph")
        inside = traced(_call(node, leaves, spec, table), [n.meta["val"] for n in given], table, mode)
        _hand_on(graph, node, splice(graph, node, given, inside))


def mode_of(graph: Any) -> Any:
    """Return the mode of the graph's stand-in tensors."""
    mode = detect_fake_mode([n.meta.get("val") for n in graph.nodes])
    if mode is None:
        raise NotHere("the program has no stand-in tensors")
    return mode


def _call(node: Any, leaves: list[Any], spec: Any, table: Table) -> Callable[..., Any]:
    """Return the node's own computation as a function of its tensor and size arguments."""
    function = table.get(node.target, node.target)

    def call(*values: Any) -> Any:
        args, kwargs = filled(leaves, spec, values)
        result = function(*args, **kwargs)
        return node.target(*args, **kwargs) if result is NotImplemented else result

    return call


def filled(leaves: Sequence[Any], spec: Any, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments and keywords with values in the places of nodes."""
    rest = iter(values)
    whole = [next(rest) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
    args, kwargs = tree_unflatten(whole, spec)
    return args, kwargs


def traced(function: Callable[..., Any], values: Sequence[Any], table: Table, mode: Any) -> Any:
    """Return what a function computes of these stand-ins, as a graph of operators that write nothing in place."""
    try:
        # without the dispatcher in Python some C++ kernels look at sizes as plain numbers
        with mode, torch.no_grad(), enable_python_dispatcher(), zero_and_one_as_others():
            made = torch_tracing.traced(function, dict(table))(*values)
    except Exception as error:  # torch raises anything here; the slower way raises it again, with the user's line
        raise NotHere(str(error)) from error
    _constants_as_nodes(made)
    for inner in made.graph.nodes:
        if inner.op not in ("placeholder", "call_function", "output") or is_mutable(inner.target):
            raise NotHere(f"it comes down to {inner.target}")
    return made.graph


def _constants_as_nodes(made: Any) -> None:
    """Put a node in place of each number that torch's functions made a tensor of."""
    for node in [n for n in made.graph.nodes if n.op == "get_attr"]:
        held = getattr(made, node.target)
        if isinstance(held, torch.Tensor) and held.dim() == 0 and not is_fake(held):
            with made.graph.inserting_before(node):
                number = made.graph.call_function(aten.scalar_tensor.default, (held.item(),), {"dtype": held.dtype})
            number.meta["val"] = node.meta.get("val", held)
            node.replace_all_uses_with(number)
            made.graph.erase_node(node)


def splice(graph: Any, node: Any, given: Sequence[Any], inside: Any) -> Any:
    """Put the nodes of `inside` before `node`, with `given` for its inputs; return the nodes of its results."""
    known: dict[Any, Any] = {}
    rest = iter(given)
    for inner in inside.nodes:
        if inner.op == "placeholder":
            known[inner] = next(rest)
        elif inner.op == "output":
            return torch.fx.map_arg(inner.args[0], known.__getitem__)
        else:
            with graph.inserting_before(node):
                known[inner] = graph.node_copy(inner, known.__getitem__)
            known[inner].meta.update({k: v for k, v in node.meta.items() if k not in ("val", "tensor_meta")})
    raise AssertionError("a graph ends in its output")


def _hand_on(graph: Any, node: Any, result: Any) -> None:
    """Let a node, or its parts, give the results that others computed."""
    if isinstance(result, torch.fx.Node):
        become(node, result)
        return
    for user in list(node.users):
        if user.target is not operator.getitem or not isinstance(result[user.args[1]], torch.fx.Node):
            raise NotHere(f"{node.target} gives more than tensors")
        become(user, result[user.args[1]])
    graph.erase_node(node)


def become(node: Any, result: Any) -> None:
    """Let a node give what another one computed, under its own name: outputs are known by it."""
    if not isinstance(node.meta.get("val"), torch.Tensor):
        raise NotHere(f"{node.target} gives no tensor")
    node.target, node.args, node.kwargs = aten.clone.default, (result,), {}
