"""FlexAttention as plain attention: scores, the user's changes to them, the user's mask, softmax.

The changes and the mask are functions of one score and its four indices. They are elementwise, so they are applied to all
scores at once, with the indices spread over their axes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from torchferry.foreign.torch_export import guards_of, keep_guards
from torchferry.foreign.torch_operators import aten


def is_used(program: Any) -> bool:
    """Whether a program has FlexAttention in it."""
    return any(_is_flex(node) for node in program.graph.nodes)


def revise(program: Any) -> Any:
    """Return the program with its FlexAttention written out."""
    guards = guards_of(program)
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if _is_flex(node):
            _replace(program.graph_module, node)
    for node in reversed(list(graph.nodes)):
        # torch's own would keep the opening and closing of vmap, with which the block mask was made and which is of no use now
        if not node.users and node.op not in ("placeholder", "output"):
            graph.erase_node(node)
    program.graph_module.recompile()
    return keep_guards(program.run_decompositions({}), guards)  # traced again, so that the new nodes know their shapes


def _is_flex(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "flex_attention"


def _replace(owner: nn.Module, node: fx.Node) -> None:
    query, key, value, score_mod, block_mask, scale, _, *others = node.args
    score_buffers, mask_buffers = (list(b) for b in (*others, (), ())[:2])
    parts = [getattr(owner, str(part.target)) for part in (score_mod, block_mask[-1])]  # type: ignore[index, union-attr]
    given = [query, key, value, *score_buffers, *mask_buffers]
    with node.graph.inserting_before(node):
        tracer = fx.proxy.GraphAppendingTracer(node.graph)
        traced = [fx.Proxy(n, tracer) for n in given]  # type: ignore[arg-type]
        score = _on_proxies(parts[0], traced[3 : 3 + len(score_buffers)])
        mask = _on_proxies(parts[1], traced[3 + len(score_buffers) :])
        groups = query.meta["val"].shape[1] // key.meta["val"].shape[1]  # type: ignore[union-attr]
        found = _attention(tracer, tuple(traced[:3]), (score, mask), scale=float(scale), groups=groups)  # type: ignore[arg-type]
        results = [f.node for f in found]
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(results[user.args[1]])  # type: ignore[index]
            node.graph.erase_node(user)
    node.graph.erase_node(node)


def _on_proxies(part: Any, buffers: list[Any]) -> Callable[..., Any]:
    """Return a function that writes the nodes of a user's graph down for other arguments."""
    return lambda *values: _Written(part, garbage_collect_values=False).run(*values, *buffers)


class _Written(fx.Interpreter):
    """Writes `table[head]` as an ordinary index: in FlexAttention torch has an operator of its own for it."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.higher_order.flat_apply and str(args[2]).endswith("ModIndex"):
            _, _, _, table, *places = args
            return aten.index.Tensor(table, places)
        return super().call_function(target, args, kwargs)


def _attention(
    tracer: Any, inputs: tuple[Any, ...], mods: tuple[Callable[..., Any], ...], *, scale: float, groups: int
) -> tuple[Any, Any, Any]:
    """Return attention, and the logarithm of its sums and its largest scores in base 2, as torch's own reference has them."""
    (query, key, value), (score_mod, mask_mod) = inputs, mods
    if groups != 1:
        key, value = (torch.repeat_interleave(t, groups, dim=1) for t in (key, value))
    scores = torch.matmul(query, torch.transpose(key, -2, -1)).float() * scale
    counted = [tracer.create_proxy("call_function", torch.arange, (scores.size(d),), {}) for d in range(4)]
    places = [p.view([-1 if d == at else 1 for at in range(4)]) for d, p in enumerate(counted)]
    scores = score_mod(scores, *places)
    keep = torch.logical_or(mask_mod(*places), torch.zeros_like(scores).bool())
    scores = torch.masked_fill(scores, torch.logical_not(keep), -float("inf"))
    seen = torch.any(scores != -float("inf"), -1, True)  # as torch counts: a score that overflowed counts as masked
    weights = torch.softmax(torch.masked_fill(scores, torch.logical_not(seen), 0.0), -1) * seen
    sums, largest = torch.logsumexp(scores, -1), torch.amax(scores, -1)
    return torch.matmul(weights.to(torch.float32), value.float()).type_as(query), sums / math.log(2), largest / math.log(2)
