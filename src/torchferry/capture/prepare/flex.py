"""FlexAttention as plain attention: scores, the user's changes to them, the user's mask, softmax.

The changes and the mask are functions of one score and its four indices. They are elementwise, so they are applied to all
scores at once, with the indices spread over their axes.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import Tensor, fx, nn


def is_used(program: Any) -> bool:
    """Whether a program has FlexAttention in it."""
    return any(_is_flex(node) for node in program.graph.nodes)


def revise(program: Any) -> Any:
    """Return the program with its FlexAttention written out."""
    guards = getattr(program, "_guards_code", None)
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if _is_flex(node):
            _replace(program.graph_module, node)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    program = program.run_decompositions({})  # traced again, so that the new nodes know their shapes
    if guards:
        program._guards_code = guards
    return program


def _is_flex(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "flex_attention"


def _replace(owner: nn.Module, node: fx.Node) -> None:
    query, key, value, score_mod, block_mask, scale, _, *others = node.args
    score_buffers, mask_buffers = (list(b) for b in (*others, (), ())[:2])
    parts = [getattr(owner, str(part.target)) for part in (score_mod, block_mask[-1])]  # type: ignore[index, union-attr]
    given = [query, key, value, *score_buffers, *mask_buffers]
    with node.graph.inserting_before(node):
        traced = [fx.Proxy(n, _Tracer(node.graph)) for n in given]  # type: ignore[arg-type]
        found = attention(*traced[:3], *_called(parts), float(scale), traced[3 : 3 + len(score_buffers)], traced[3 + len(score_buffers) :])
        results = [f.node for f in found]
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(results[user.args[1]])  # type: ignore[index]
            node.graph.erase_node(user)
    node.graph.erase_node(node)


class _Tracer(fx.proxy.GraphAppendingTracer):
    """Writes what is done to proxies into a graph."""


def _called(parts: list[Any]) -> list[Any]:
    """Return functions that run the users' graphs on proxies, node by node."""
    return [lambda *values, part=part: fx.Interpreter(part, garbage_collect_values=False).run(*values) for part in parts]


def attention(query: Any, key: Any, value: Any, score_mod: Any, mask_mod: Any, scale: float, score_extra: list[Any], mask_extra: list[Any]) -> tuple[Any, Any, Any]:
    """Return attention, and the logarithm of its sums and its largest scores in base 2, as torch's own reference has them."""
    groups = torch.floor_divide(query.size(1), key.size(1)) if isinstance(query, Tensor) else query.size(1) // key.size(1)
    key, value = (torch.repeat_interleave(t, groups, dim=1) for t in (key, value))
    scores = torch.matmul(query, torch.transpose(key, -2, -1)).float() * scale
    places = [torch.arange(scores.size(d)).view([-1 if d == at else 1 for at in range(4)]) for d in range(4)]
    scores = score_mod(scores, *places, *score_extra)
    keep = torch.logical_or(mask_mod(*places, *mask_extra), torch.zeros_like(scores).bool())
    scores = torch.masked_fill(scores, torch.logical_not(keep), -float("inf"))
    seen = torch.any(keep, -1, True)
    weights = torch.where(seen, torch.softmax(torch.masked_fill(scores, torch.logical_not(seen), 0.0), -1), 0.0)
    sums = torch.logsumexp(scores, -1) / math.log(2)
    return torch.matmul(weights.to(value.dtype), value), sums, torch.amax(scores, -1) / math.log(2)
