"""A captured program made ready for translation: in operators that have one, functional, with explicit casts.

torch's own `run_decompositions` traces the whole program again, which costs more than all the rest of the translation.
So a program whose operators can all be translated as they are only has what means nothing at inference taken out.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from torchferry.foreign import torch_onnx
from torchferry.foreign.torch_export import with_graph_module
from torchferry.foreign.torch_operators import aten, is_mutable, schema_of
from torchferry.retrace import free_sizes
from torchferry.translate.aliases import FIRST_NAMES
from torchferry.translate.complex_parts import concerned, in_parts, take_apart
from torchferry.translate.empties import settle
from torchferry.translate.expand import NotHere, expand
from torchferry.translate.numbers import numbers_as_tensors

Table = Mapping[Any, Callable[..., Any]]
# What computes nothing once gradients and training are gone: the result is the first argument.
PASSES_THROUGH = {aten.detach.default, aten.detach_.default, aten.alias.default, aten.lift_fresh_copy.default}
TORCHS_OWN_WORDS = "Runtime assertion failed for expression"  # it has checked these at the example, and sizes are declared
DROPOUTS = {aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default, aten.feature_alpha_dropout.default}


def prepare(program: Any, registry: Any, ours: Table, special: Sequence[tuple[Table, Callable[..., bool]]]) -> Any:
    """Return the program in translatable operators.

    `ours` are decompositions that go before torch's own; those in `special` do so only for calls that meet their condition.
    """
    tidy = _tidied(program)
    inner: dict[Any, Any] = {}  # what may come up again inside of what is written out
    written_out = set(_in_the_way(tidy, registry, {}))
    for table, applies in special:
        met = {node for node in tidy.graph.nodes if node.op == "call_function" and _meets(applies, node)}
        wanted = {node.target for node in met} & table.keys()
        if wanted or any(node in written_out or node.target in ours for node in met):
            inner |= {target: _guarded(function, applies) for target, function in table.items()}
            ours = {**{target: inner[target] for target in wanted}, **ours}
    if not _as_it_is(tidy, registry, ours):
        table = {**torch_onnx.decomposition_table(registry), **{t: in_parts(f) for t, f in {**inner, **ours}.items()}}
        try:
            with torch_onnx.silent():
                expand(tidy.graph, [n for n in _in_the_way(tidy, registry, ours) if not concerned(n)], table)
                take_apart(tidy.graph, table)
            done = _as_it_is(tidy, registry, {})  # what is left of ours declined to be written out
        except NotHere:
            done = False
        if not done:
            with free_sizes():
                tidy = torch_onnx.decompose(_tidied(program), table)
            with torch_onnx.silent():
                for module in tidy.graph_module.modules():
                    take_apart(module.graph, table)
        settle(tidy.graph)
        _without_strides(tidy.graph_module)
        tidy.graph.eliminate_dead_code()
    numbers_as_tensors(tidy.graph)
    with free_sizes():
        return torch_onnx.promote(tidy)


def _guarded(function: Callable[..., Any], applies: Callable[..., bool]) -> Callable[..., Any]:
    """Return a decomposition that leaves alone what it is not meant for."""
    return lambda *args, **kwargs: function(*args, **kwargs) if applies(*args, **kwargs) else NotImplemented


def _meets(applies: Callable[..., bool], node: Any) -> bool:
    """Whether a condition on calls holds for a node; a complex argument is judged by its parts."""

    def value(arg: Any) -> Any:
        value = arg.meta.get("val")
        return value.real if isinstance(value, torch.Tensor) and value.is_complex() else value

    return applies(*torch.fx.map_arg(node.args, value), **torch.fx.map_arg(node.kwargs, value))


def untranslatable(program: Any, registry: Any) -> Iterator[Any]:
    """Yield every node of a prepared program that has no translation, in its subgraphs too."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes:
            if node.op == "call_function" and not torch_onnx.translatable(node, registry):
                yield node


def dropped_checks(program: Any) -> Iterator[tuple[Any, str]]:
    """Yield the assertions that a model makes of values, with their words; those that torch makes of sizes are left out."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.target in _assertions() and len(node.args) == 2 and not str(node.args[1]).startswith(TORCHS_OWN_WORDS):
                yield node, str(node.args[1])


def _tidied(program: Any) -> Any:
    """Return a copy of the program whose graph has lost dropouts that are off, detaches, aliases and work on nothing."""
    graph = copy.deepcopy(program.graph)
    for node, original in zip(list(graph.nodes), list(program.graph.nodes), strict=True):
        node.target = FIRST_NAMES.get(node.target, node.target) if node.op == "call_function" else node.target
        node.name = original.name  # a copy renames what is called like a Python builtin, and the signature goes by names
        if node.op == "call_function" and _passes_through(node):
            if any(user.op == "output" for user in node.users):  # outputs are known by their node's name
                node.target, node.args, node.kwargs = aten.clone.default, (node.args[0],), {}
            else:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    _write_to_copies(
        graph, {*program.graph_signature.inputs_to_parameters, *program.graph_signature.inputs_to_lifted_tensor_constants}
    )
    settle(graph)
    return with_graph_module(program, torch.fx.GraphModule(program.graph_module, graph))


def _write_to_copies(graph: torch.fx.Graph, weights: set[str]) -> None:
    """Let what a program writes into a weight, or a constant, be written into a copy that each run begins with.

    Buffers may be written to in a program, and what is written to them is left out; of the others torch refuses it.
    """
    written = {root for node in graph.nodes for arg in _written_by(node) if (root := _viewed(arg)).name in weights}
    for weight in written:
        with graph.inserting_after(weight):
            made = graph.call_function(aten.clone.default, (weight,))
        made.meta.update(weight.meta)
        weight.replace_all_uses_with(made, delete_user_cb=lambda user, made=made: user is not made)  # type: ignore[misc]


def _written_by(node: Any) -> list[Any]:
    """Return what an operator writes into, of its arguments."""
    if node.op != "call_function" or not is_mutable(node.target):
        return []
    names = [
        (i, a.name) for i, a in enumerate(schema_of(node.target).arguments) if a.alias_info is not None and a.alias_info.is_write
    ]
    given = [node.args[i] if i < len(node.args) else node.kwargs.get(name) for i, name in names]
    return [one for g in given for one in (g if isinstance(g, list | tuple) else [g]) if isinstance(one, torch.fx.Node)]


def _viewed(node: Any) -> Any:
    """Return what a node of a program is a view of, at the end of all views."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], torch.fx.Node):
        schema = schema_of(node.target)
        if node.target is not operator.getitem and not (schema and any(r.alias_info is not None for r in schema.returns)):
            break
        node = node.args[0]
    return node


def _without_strides(module: Any) -> None:
    """Put products of sizes for the strides of plainly laid out tensors: ONNX has no strides."""
    for graph in (m.graph for m in module.modules()):
        for node in [n for n in graph.nodes if n.target is aten.sym_stride.int and n.args[0].meta["val"].is_contiguous()]:
            tensor, axis = node.args
            with graph.inserting_before(node):
                new: Any = 1
                for later in range(axis % tensor.meta["val"].dim() + 1, tensor.meta["val"].dim()):
                    size = graph.call_function(aten.sym_size.int, (tensor, later))
                    size.meta["val"] = tensor.meta["val"].shape[later]
                    product = size if new == 1 else graph.call_function(operator.mul, (new, size))
                    product.meta["val"] = size.meta["val"] if new == 1 else node.meta["val"]
                    new = product
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def _passes_through(node: Any) -> bool:
    if node.target in PASSES_THROUGH:
        return True
    return node.target in DROPOUTS and len(node.args) == 3 and node.args[2] is False


def _as_it_is(program: Any, registry: Any, ours: Table) -> bool:
    """Whether every operator has a translation, none writes in place, and nothing is nested."""
    return sum(1 for _ in program.graph_module.modules()) == 1 and not _in_the_way(program, registry, ours)


def _in_the_way(program: Any, registry: Any, ours: Table) -> list[Any]:
    """Return the nodes that must be written out in other operators."""
    return [
        node
        for node in program.graph.nodes
        if node.op == "call_function"
        and node.target not in _assertions()
        and (node.target in ours or is_mutable(node.target) or concerned(node) or not torch_onnx.translatable(node, registry))
    ]


def _assertions() -> set[Any]:
    """Return the operators that only assert: they are dropped before translation."""
    return {
        aten.sym_constrain_range_for_size.default,
        aten._assert_async.default,
        aten._assert_async.msg,
        aten._assert_scalar.default,
        aten._assert_tensor_metadata.default,
    }
