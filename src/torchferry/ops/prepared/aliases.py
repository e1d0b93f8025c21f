"""Outputs of a loop's or branch's body that are its own inputs, or one another: as copies, which torch insists on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from torchferry.foreign.torch_operators import OpOverload, aten, schema_of

_BODIES = ("scan", "while_loop", "cond", "map_impl", "associative_scan")


def is_needed(program: Any) -> bool:
    """Whether a body in a program gives back a tensor that it was given, or one twice."""
    return any(True for body in _bodies(program.graph_module) for _ in _aliases(body))


def revise(program: Any) -> Any:
    """Return the program with copies in place of such outputs; it is changed itself."""
    for body in _bodies(program.graph_module):
        for output, index in list(_aliases(body)):
            results = list(output.args[0])  # type: ignore[arg-type]
            given = results[index]
            with body.graph.inserting_before(output):
                copy = body.graph.call_function(aten.clone.default, (given,))
            copy.meta = dict(given.meta)  # type: ignore[union-attr]
            results[index] = copy
            output.args = (tuple(results),)
        body.recompile()
    return program


def _bodies(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    for node in module.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "__name__", "") in _BODIES:
            for argument in node.args:
                part = getattr(module, str(argument.target), None) if isinstance(argument, fx.Node) else None
                if isinstance(part, fx.GraphModule):
                    yield part
                    yield from _bodies(part)


def _aliases(body: fx.GraphModule) -> Iterator[tuple[fx.Node, int]]:
    """Yield the places in a body's outputs that hold a tensor which is there already."""
    output = next(iter(reversed(body.graph.nodes)))
    results = output.args[0]
    seen: set[fx.Node] = {n for n in body.graph.nodes if n.op == "placeholder"}
    for index, result in enumerate(results if isinstance(results, list | tuple) else ()):
        if isinstance(result, fx.Node) and isinstance(result.meta.get("val"), torch.Tensor):
            base = _base(result)
            if base in seen:
                yield output, index
            seen.add(base)


def _base(node: fx.Node) -> fx.Node:
    """Return the node whose memory a tensor may have, through views, items of a list and changes of dtype that change nothing."""
    while isinstance(source := node.args[0] if node.args else None, fx.Node):
        if not (_gives(source, _is_list) if node.target is operator.getitem else _gives(node, _is_view)):
            break
        node = source
    return node


def _gives(node: fx.Node, what: Callable[[Any], bool]) -> bool:
    return isinstance(node.target, OpOverload) and any(map(what, schema_of(node.target).returns))


def _is_view(given: Any) -> bool:
    return given.alias_info is not None


def _is_list(given: Any) -> bool:
    """Whether tensors are given as a list: parts of one, sooner or later, whatever the operator says."""
    return given.type.kind() == "ListType"
