"""Operators computed in float32 where the runtime has no kernels for the model's own dtype.

bfloat16: each operator takes its inputs as float32 and rounds its result to bfloat16, as torch's own kernels do inside, so
the numbers are those of the eager model and not better ones. float64: the same with float32 in between, which loses digits;
only operators for which the runtime lacks a kernel are touched.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from torchferry.edits.capture import PrepareFloat32Kernels
from torchferry.foreign.torch_export import guards_of, keep_guards
from torchferry.foreign.torch_operators import HigherOrderOperator, OpOverload, aten, is_mutable, schema_name

# these move numbers about without computing any; the runtime has them for every dtype
_MOVES = frozenset({
    "view", "reshape", "transpose", "permute", "t", "unsqueeze", "squeeze", "slice", "select", "flatten", "unbind", "chunk",
    "split", "split_with_sizes", "cat", "embedding", "detach", "alias", "clone", "contiguous", "dropout", "_to_copy", "to",
    "type_as", "lift_fresh", "lift_fresh_copy", "item", "_local_scalar_dense", "_assert_tensor_metadata",
})  # fmt: skip


# the runtime has float64 kernels for sums, products and matrix products; names with these words in them it has not
_NO_DOUBLE = (
    "conv", "pool", "upsample", "interpolate", "grid_sampler", "norm", "lstm", "gru", "rnn", "erf", "stft", "bucketize", "topk",
    "gelu", "silu", "softplus", "mish", "hardswish", "hardsigmoid", "hardtanh", "elu", "prelu", "glu", "softsign", "logsigmoid",
    "cumsum", "roll", "nonzero",
)  # fmt: skip


def revise(program: Any, edit: PrepareFloat32Kernels) -> Any:
    """Return the program with the operators of a dtype computed in float32; of float64 only those that need it, unless `all`."""
    dtype = getattr(torch, edit.dtype)
    only = None if edit.all or dtype is not torch.float64 else _NO_DOUBLE
    program = _functional(program)
    for module in program.graph_module.modules():
        if isinstance(module, fx.GraphModule):
            names = _widened(module.graph, dtype, only)
            module.graph.lint()
            module.recompile()
            if module is program.graph_module:
                for old, new in names.items():
                    program.graph_signature.replace_all_uses(old, new)
    return program


def _widened(graph: fx.Graph, dtype: torch.dtype, only: Any) -> dict[str, str]:
    """Put casts around the operators of a graph; return the new names of its outputs."""
    before = [n.name for n in graph.output_node().all_input_nodes]
    for node in list(graph.nodes):
        if _computes(node, only) and _touches(node, dtype):
            _widen(graph, node, dtype)
    after = [n.name for n in graph.output_node().all_input_nodes]
    return {old: new for old, new in zip(before, after, strict=True) if old != new}


def _functional(program: Any) -> Any:
    """Return the program in operators that write into none of their inputs, with autocast blocks as the casts they make."""
    mutable = any(is_mutable(n.target) for n in program.graph.nodes)
    nested = any(isinstance(n.target, HigherOrderOperator) for n in program.graph.nodes)
    if not mutable and not nested:
        return program
    return keep_guards(program.run_decompositions({}), guards_of(program))


def _computes(node: fx.Node, only: Any) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    name = schema_name(node.target).partition("::")[2]
    return name not in _MOVES and (only is None or any(word in name for word in only))


def _touches(node: fx.Node, dtype: torch.dtype) -> bool:
    given = [n for n in node.all_input_nodes if _has(n.meta.get("val"), dtype)]
    return bool(given) or any(_has(v, dtype) for v in _leaves(node.meta.get("val")))


def _has(value: Any, dtype: torch.dtype) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == dtype


def _widen(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> None:
    with graph.inserting_before(node):
        wide = {n: _cast(graph, n, torch.float32) for n in node.all_input_nodes if _has(n.meta.get("val"), dtype)}
    node.args = fx.map_arg(node.args, lambda n: wide.get(n, n))
    node.kwargs = {k: torch.float32 if v == dtype else v for k, v in fx.map_arg(node.kwargs, lambda n: wide.get(n, n)).items()}
    node.args = tuple(torch.float32 if isinstance(a, torch.dtype) and a == dtype else a for a in node.args)
    value = node.meta.get("val")
    node.meta["val"] = _retyped(value, dtype)
    if isinstance(value, torch.Tensor):
        if value.dtype == dtype:
            _narrow_after(graph, node, dtype)
        return
    for user in list(node.users):
        kept = user.meta.get("val")
        if user.target is operator.getitem and _has(kept, dtype):
            user.meta["val"] = _retyped(kept, dtype)
            _narrow_after(graph, user, dtype)


def _narrow_after(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> None:
    users = list(node.users)
    with graph.inserting_after(node):
        back = _cast(graph, node, dtype)
    for user in users:
        user.replace_input_with(node, back)


def _cast(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> fx.Node:
    made = graph.call_function(aten._to_copy.default, (node,), {"dtype": dtype})
    value = node.meta["val"]
    made.meta = {
        key: node.meta[key] for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn") if key in node.meta
    }
    made.meta["val"] = _as(value, dtype)
    return made


def _retyped(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_retyped(v, dtype) for v in value)
    return _as(value, torch.float32) if _has(value, dtype) else value


def _as(value: Any, dtype: torch.dtype) -> Any:
    mode = getattr(value, "fake_mode", None)
    if mode is None:
        return value.to(dtype)
    with mode:
        return value.to(dtype)


def _leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]
