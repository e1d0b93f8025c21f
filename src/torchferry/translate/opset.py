"""Which opset and IR version the file gets: what was asked for, otherwise the lowest that the graph needs."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from torchferry.ops.lowered import floors, lower, needed, raise_to
from torchferry.records import Location
from torchferry.records.findings import OpsetCannotExpress
from torchferry.releases import IR_OF_OPSET, Target
from torchferry.translate.provenance import provenance

LOWEST_UNASKED = 9  # below this nothing is gained, and old runtimes differ in more than their schemas


def fit(model: ir.Model, target: Target, asked: int | None, prefix: str) -> list[OpsetCannotExpress]:
    """Stamp the model with its opset and IR version, rewriting nodes as that takes; return what cannot be expressed."""
    now = model.opset_imports.get("", LOWEST_UNASKED)
    wanted = asked if asked is not None else min(max(needed(model), LOWEST_UNASKED), target.opset)
    if wanted < now:
        left = lower(model, wanted)
    elif wanted > now:
        left = raise_to(model, wanted)
    else:
        left = []
    if left:
        lowest, places = max(floors(node, now) for node in left), provenance(model, prefix)
        return [_cannot(node, wanted, lowest, places) for node in left]
    model.opset_imports[""] = wanted
    model.ir_version = min(target.ir, max(IR_OF_OPSET.get(wanted, target.ir), _ir_for_types(model)))
    return []


def _cannot(node: ir.Node, wanted: int, lowest: int, places: Mapping[str, Location]) -> OpsetCannotExpress:
    where = places.get(str(node.name), Location(onnx_node=node.name))
    return OpsetCannotExpress(node.op_type, wanted, lowest, location=where)


def _ir_for_types(model: ir.Model) -> int:
    """Return the IR version that the newest dtype in the graph came with."""
    dtypes = {v.dtype for node in ir.traversal.RecursiveGraphIterator(model.graph) for v in node.outputs}
    dtypes |= {v.dtype for v in [*model.graph.inputs, *model.graph.initializers.values()]}
    if dtypes & {ir.DataType.INT4, ir.DataType.UINT4}:
        return 10
    if any(str(d).startswith("FLOAT8") for d in dtypes):
        return 9
    return 4
