"""Nodes of newer opsets in the words of an older one, and the other way round; each result is checked against the schema.

A family offers `LOWERINGS`: operator -> (lowest opset that its rewriting reaches, function of a Draft and the wanted opset).
The function returns the values that take over the node's outputs, or None when this use of the operator can't be lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
from onnx_ir.passes import common

from torchferry.ops.draft import Draft
from torchferry.ops.lowered import elementwise, movement, normalisation, reductions, shapes
from torchferry.ops.lowered.schema import fits, known, needed, since, standard_nodes, trim

Lowering = Callable[[Draft, int], Sequence[ir.Value] | None]
TABLE: dict[str, tuple[int, Lowering]] = {
    **elementwise.LOWERINGS,
    **movement.LOWERINGS,
    **normalisation.LOWERINGS,
    **reductions.LOWERINGS,
    **shapes.LOWERINGS,
}

__all__ = ["floors", "lower", "needed", "raise_to"]


def lower(model: ir.Model, wanted: int) -> list[ir.Node]:
    """Rewrite the model for an older opset, in place; return the nodes that cannot be expressed in it."""
    common.ShapeInferencePass()(model)  # schemas are chosen by dtype, and inner values may lack theirs
    left = [node for node in standard_nodes(model) if not _lowered(node, model.opset_imports[""], wanted)]
    common.RemoveUnusedNodesPass()(model)
    if not left and wanted < 12:  # before 12 a constant has no other form than `value`
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    return left


def raise_to(model: ir.Model, wanted: int) -> list[ir.Node]:
    """Return the nodes whose meaning changed between the model's opset and a newer one."""
    now = model.opset_imports[""]
    return [n for n in standard_nodes(model) if since(n, wanted) != since(n, now) and not fits(n, wanted, now)]


def floors(node: ir.Node, now: int) -> int:
    """Return the lowest opset in which a node of opset `now` can be expressed."""
    lowest, _ = TABLE.get(node.op_type, (7, None))
    return next((v for v in range(lowest, now) if since(node, now) <= v or fits(node, v, now)), now)


def _lowered(node: ir.Node, now: int, wanted: int) -> bool:
    if since(node, now) <= wanted:
        return True
    if fits(node, wanted, now):
        trim(node, wanted)
        return True
    reach, function = TABLE.get(node.op_type, (now, None))
    if function is None or wanted < reach:
        return False
    draft = Draft(node)
    values = function(draft, wanted)
    if values is None:
        return False
    if not draft.nodes:  # nothing to compute: the input is the output
        values = [draft("Identity", *values)]
    made = list(draft.nodes)
    draft.swap(*values)
    return all(known(new, wanted) and (fits(new, wanted, wanted) or _lowered(new, now, wanted)) for new in made)
