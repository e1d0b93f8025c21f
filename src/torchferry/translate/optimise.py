"""Passes that make the graph smaller without changing one bit of what it computes.

onnxscript's own optimiser is not called whole: its rewrite rules take most of its time, and its no-op rules match
constants with a tolerance, so that `x + 1e-8` and `x * 1.000001` disappear.
"""

from __future__ import annotations

from collections.abc import Hashable

import onnx_ir as ir
import torch
from onnx_ir.passes import common
from onnxscript.optimizer import fold_constants_ir

from torchferry.foreign.torch_onnx import silent
from torchferry.ops.passes.casts import name_types
from torchferry.ops.passes.padding import guard_pad_before_maxpool
from torchferry.ops.passes.signs import unsigned_weights
from torchferry.ops.passes.tails import exact_tails
from torchferry.ops.passes.types import know_types

FOLDED_INPUT = 8192  # elements; larger constants are weights, and folding them makes copies
FOLDED_OUTPUT = 65536
# Evaluated in pure Python by onnx's reference, element by element: minutes for one image.
SLOW_TO_FOLD = {"Resize", "Upsample", "Conv", "ConvTranspose", "GridSample", "RoiAlign", "Loop", "Scan", "LSTM", "GRU", "RNN"}


def optimise(model: ir.Model) -> None:
    """Inline, fold what is constant, share what is equal and drop what is unused, in place."""
    with silent():
        _inline(model)
        share_weights(model)  # before anything is folded: two uses of one weight would become two weights
        for _ in range(2):
            changed = _fold(model)
            common.RemoveUnusedNodesPass()(model)
            if not changed:
                break
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
        common.LiftSubgraphInitializersToMainGraphPass()(model)
        share_weights(model)
        common.DeduplicateInitializersPass(size_limit=1024)(model)
        common.CommonSubexpressionEliminationPass()(model)
        common.IdentityEliminationPass()(model)
        _own_outputs(model)  # first: a node whose value a branch only passes on would count as unused
        common.RemoveUnusedNodesPass()(model)
        common.RemoveUnusedFunctionsPass()(model)
        common.RemoveUnusedOpsetsPass()(model)
        tidy(model)


def inline(model: ir.Model) -> None:
    """Only inline: the graph as it was translated, in place."""
    with silent():
        _inline(model)
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
        common.RemoveUnusedNodesPass()(model)
        share_weights(model)
        tidy(model)


def _inline(model: ir.Model) -> None:
    """Put the bodies of functions in place of their calls; the version that torch gives its own bodies' domain varies."""
    for function in model.functions.values():
        own = {f.domain for f in model.functions.values()} & function.opset_imports.keys()
        function.opset_imports.update({d: model.opset_imports[d] for d in own if d in model.opset_imports})
    common.InlinePass()(model)


def tidy(model: ir.Model) -> None:
    """Do what a file needs to be right in onnxruntime, optimised or not, in place."""
    guard_pad_before_maxpool(model)
    unsigned_weights(model)
    know_types(model)
    name_types(model)
    exact_tails(model)
    _own_outputs(model)


def _own_outputs(model: ir.Model) -> None:
    """Give branches and loops outputs that they compute themselves: one that is only passed on is refused by onnxruntime."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                _own_outputs_of(attribute.as_graph())


def _own_outputs_of(branch: ir.Graph) -> None:
    for index, value in enumerate(branch.outputs):
        producer = value.producer()
        if producer is not None and producer.graph is branch and value not in list(branch.outputs)[:index]:
            continue
        copy = ir.Node("", "Identity", [value], name=f"node_{value.name}_{index}_out")
        copy.outputs[0].name = f"{value.name}_{index}_out"
        copy.outputs[0].type, copy.outputs[0].shape = value.type, value.shape
        branch.append(copy)
        branch.outputs[index] = copy.outputs[0]


def share_weights(model: ir.Model) -> None:
    """Let initializers that are the same memory be one: tied weights are stored once."""
    first: dict[Hashable, ir.Value] = {}
    for name, value in list(model.graph.initializers.items()):
        key = _memory(value)
        if key is None or value.is_graph_output():
            continue
        kept = first.setdefault(key, value)
        if kept is not value:
            value.replace_all_uses_with(kept)
            del model.graph.initializers[name]


def _memory(value: ir.Value) -> Hashable:
    raw = getattr(value.const_value, "raw", None)
    if not isinstance(raw, torch.Tensor) or raw.numel() == 0:
        return None
    return (raw.data_ptr(), raw.dtype, tuple(raw.shape), raw.stride())


def _is_weight(value: ir.Value | None) -> bool:
    """Whether a value is a parameter of the user's: folded into something else, it would lose its name."""
    kind = "pkg.torch.export.graph_signature.InputSpec.kind"
    return value is not None and value.metadata_props.get(kind) == "PARAMETER"


def _fold(model: ir.Model) -> bool:
    result = fold_constants_ir(
        model,
        input_size_limit=FOLDED_INPUT,
        output_size_limit=FOLDED_OUTPUT,
        should_fold=lambda node: False if node.op_type in SLOW_TO_FOLD or any(_is_weight(v) for v in node.inputs) else None,
    )
    return bool(result.modified)
