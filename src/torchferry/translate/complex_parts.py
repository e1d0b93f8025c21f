"""Complex numbers taken apart: what is computed with them, written with their real and imaginary parts.

torch has a tensor subclass that does this to every operator; each node with complex numbers in it is traced with that. Left
are the operators that ONNX takes in pairs: Fourier transforms, and the views between pairs and complex numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_complex import ComplexTensor
from torchferry.foreign.torch_operators import OpOverload, aten, can_decompose, is_mutable, schema_of
from torchferry.foreign.torch_trees import tree_flatten, tree_leaves, tree_map
from torchferry.ops.complex_forms import Forms, apart, together
from torchferry.translate.expand import NotHere, Table, become, expand, filled, mode_of, splice, traced

IN_PAIRS = {  # translated as they are
    *(aten.view_as_real.default, aten.view_as_complex.default, aten.complex.default, aten.clone.default),
    *(aten._fft_c2c.default, aten._fft_c2r.default, aten._fft_r2c.default, operator.getitem),
}
SIZES = {aten.sym_size.int, aten.sym_numel.default, aten.sym_stride.int}


def take_apart(graph: Any, table: Table) -> None:
    """Write the graph's complex arithmetic with real numbers, in place; what has no such form stays."""
    if not any(_is_complex(v) for n in graph.nodes for v in _values(n)):
        return
    for node in [n for n in graph.nodes if _touches(n) and n.target not in SIZES and can_decompose(n.target)]:
        with suppress(NotHere):  # it is told as an operator without translation
            expand(graph, [node], table)
    known: dict[Any, tuple[Any, Any]] = {}
    mode = mode_of(graph)
    for node in [n for n in graph.nodes if _touches(n)]:
        try:
            _rewrite(graph, node, known, table, mode)
        except NotHere:  # it is told as an operator without translation
            continue
    graph.eliminate_dead_code()


def concerned(node: Any) -> bool:
    """Whether a node computes with complex numbers, and has no translation in pairs; made of others, these are asked."""
    return _touches(node) and (node.target in SIZES or not can_decompose(node.target))


def _touches(node: Any) -> bool:
    target = node.target
    if node.op != "call_function" or target in IN_PAIRS or not isinstance(target, OpOverload):
        return False
    return not is_mutable(target) and any(_is_complex(v) for n in (node, *node.all_input_nodes) for v in _values(n))


def _values(node: Any) -> list[Any]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, tuple | list) else [value]


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _rewrite(graph: Any, node: Any, known: dict[Any, tuple[Any, Any]], table: Table, mode: Any) -> None:
    """Write one node out over the parts of its arguments; where it gives complex numbers, remember their parts."""
    if node.target in SIZES:
        node.args = (_parts(graph, node.args[0], known, mode)[0], *node.args[1:])
        return
    leaves, spec = tree_flatten((list(node.args), dict(node.kwargs)))
    sources = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]
    given: list[Any] = []
    for source in sources:
        given += _parts(graph, source, known, mode) if _is_complex(source.meta["val"]) else [source]
    inside = traced(_call(node, sources, leaves, spec, table), [n.meta["val"] for n in given], table, mode)
    results = splice(graph, node, given, inside)
    if len(results) == 1 and not isinstance(node.meta["val"], tuple | list):
        _settle(node, results[0], known)
        return
    for user in list(node.users):
        _settle(user, results[user.args[1]], known)


def _settle(node: Any, result: tuple[Any, ...], known: dict[Any, tuple[Any, Any]]) -> None:
    """Let a node give what was computed, put together if it has two parts."""
    if len(result) == 1:
        become(node, result[0])
    else:
        known[node] = (result[0], result[1])
        node.target, node.args, node.kwargs = aten.complex.default, tuple(result), {}


def _parts(graph: Any, node: Any, known: dict[Any, tuple[Any, Any]], mode: Any) -> tuple[Any, Any]:
    """Return the nodes of a complex node's real and imaginary part."""
    if node not in known:
        following = node.next
        while following.op == "placeholder":
            following = following.next
        inside = traced(lambda value: _halves(torch.view_as_real(value)), [node.meta["val"]], {}, mode)
        known[node] = splice(graph, following, [node], inside)
    return known[node]


def _halves(pairs: Tensor) -> tuple[Tensor, Tensor]:
    return pairs.select(-1, 0), pairs.select(-1, 1)


def in_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decomposition that also takes complex tensors: they are taken apart before it, and put together behind it."""

    def taken_apart(*args: Any, **kwargs: Any) -> Any:
        if not any(_is_complex(leaf) for leaf in tree_leaves((args, kwargs))):
            return function(*args, **kwargs)
        args, kwargs = tree_map(apart, (args, kwargs))
        with Forms():
            result = function(*args, **kwargs)
        return tree_map(together, result)

    return taken_apart


def _call(node: Any, sources: list[Any], leaves: list[Any], spec: Any, table: Table) -> Callable[..., Any]:
    """Return the node's computation as a function of parts, which gives a tuple of parts for each result."""
    whole = ComplexTensor
    wants_tensor = [str(a.type) == "Tensor" for a in schema_of(node.target).arguments]

    def call(*parts: Any) -> list[tuple[Tensor, ...]]:
        rest = iter(parts)
        values = [whole(next(rest), next(rest)) if _is_complex(s.meta["val"]) else next(rest) for s in sources]
        args, kwargs = filled(leaves, spec, values)
        args = [_number(arg, node) if tensor else arg for arg, tensor in zip(args, wants_tensor, strict=False)]
        with Forms(table) as forms:
            result = forms.call(node.target, *args, **kwargs)
        return [
            (r.re, r.im) if isinstance(r, whole) else (r,) for r in (result if isinstance(result, tuple | list) else [result])
        ]

    return call


def _number(value: Any, node: Any) -> Any:
    """Return a complex number as a tensor in the precision of the result; anything else as it is."""
    if not isinstance(value, complex):
        return value
    dtype = node.meta["val"].dtype.to_real()
    return ComplexTensor(torch.full((), value.real, dtype=dtype), torch.full((), value.imag, dtype=dtype))
