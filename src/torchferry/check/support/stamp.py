"""The versions a file is stamped with: can the target read them, and are the nodes written in the form they promise?"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from torchferry.check.reading import graph, schemas
from torchferry.records import Finding, Location
from torchferry.records.findings import IrMissing, IrTooNew, NodeNotInOpset, OpsetMissing, OpsetTooNew, UnusedImport
from torchferry.releases import IR_OF_OPSET, Target

# Operators that mean something else from this opset on although an old node is still well-formed.
CHANGED_MEANING = {
    "Softmax": 13,
    "LogSoftmax": 13,
    "Hardmax": 13,
    "Resize": 11,
    "GroupNormalization": 21,
    "BatchNormalization": 14,
    "Cast": 6,
}
LOWEST = 7  # no runtime of the table has kernels for older forms


def findings(model: onnx.ModelProto, target: Target) -> list[Finding]:
    """Return which stamps the target cannot read."""
    return [*_ir(model, target), *_opset(model, target), *_other_domains(model, target)]


def _ir(model: onnx.ModelProto, target: Target) -> Iterator[Finding]:
    if model.ir_version > target.ir:
        yield IrTooNew(model.ir_version, target.ir, str(target))
    elif model.ir_version < 1:
        yield IrMissing(min(8, target.ir))


def _opset(model: onnx.ModelProto, target: Target) -> Iterator[Finding]:
    stamped = graph.opset(model)
    newest = max((v for p in (model, *model.functions) if (v := graph.opset(p)) is not None), default=0)
    if newest > target.opset:
        yield OpsetTooNew(newest, target.opset, str(target), tuple(changed(model, target.opset)))
    if stamped is None and any(p.node.domain in schemas.STANDARD for p in graph.places(model)):
        of_its_time = max((o for o, ir in IR_OF_OPSET.items() if ir <= model.ir_version), default=target.opset)
        yield OpsetMissing(nearest(model, min(of_its_time, target.opset), target.opset))


def changed(model: onnx.ModelProto, to: int) -> list[str]:
    """Return the operators in use whose schema at `to` is not the one that the model's stamp promises."""
    ops = {(p.node.op_type, stamped) for p, stamped in _standard(model)}
    return sorted({o for o, stamped in ops if schemas.since(o, min(stamped, schemas.NEWEST)) != schemas.since(o, to)})


def _other_domains(model: onnx.ModelProto, target: Target) -> Iterator[Finding]:
    used = {p.node.domain for p in graph.places(model)} | {f.domain for f in model.functions}
    most = {"ai.onnx.ml": target.ml}
    for entry in model.opset_import:
        if entry.domain in schemas.STANDARD:
            continue
        if entry.domain not in used:
            yield UnusedImport(entry.domain, entry.version)
        elif entry.domain in most and entry.version > most[entry.domain]:
            yield OpsetTooNew(entry.version, most[entry.domain], str(target), domain=entry.domain)


def misstamped(model: onnx.ModelProto, target: Target) -> list[NodeNotInOpset]:
    """Return the nodes that are not written in the form of the stamped opset, and the opset whose form they have."""
    found = []
    wrong = [
        (p, stamped, why)
        for p, stamped in _standard(model)
        if stamped <= schemas.NEWEST and (why := schemas.misfit(p.node, stamped)) is not None and schemas.known(p.node.op_type)
    ]
    fits = nearest(model, wrong[0][1], target.opset) if wrong else None
    for place, stamped, why in wrong:
        keeps = fits is not None and keeps_meaning(model, fits)
        where = Location(onnx_node=place.label, op=place.node.op_type)
        found.append(NodeNotInOpset(why, stamped, fits, keeps, location=where))
    return found


def _standard(model: onnx.ModelProto) -> list[tuple[graph.NodePlace, int]]:
    """Return the nodes of the standard's own domain, each with the opset of its part: functions bring their own stamps."""
    parts = [(model.graph, graph.opset(model)), *((f, graph.opset(f)) for f in model.functions)]
    return [
        (p, stamped)
        for part, stamped in parts
        if stamped is not None
        for p in graph.nodes_of(part)
        if p.node.domain in schemas.STANDARD
    ]


def nearest(model: onnx.ModelProto, stamped: int, most: int) -> int | None:
    """Return the opset nearest to the stamped one under which every node is valid, or None."""
    forms = {
        (p.node.op_type, tuple(a.name for a in p.node.attribute), len(p.node.input), len(p.node.output)): p.node
        for p in graph.places(model)
        if p.node.domain in schemas.STANDARD
    }
    nodes = list(forms.values())
    for version in sorted(range(LOWEST, most + 1), key=lambda v: (abs(v - stamped), -v)):
        if all(schemas.misfit(n, version) is None for n in nodes):
            return version
    return None


def keeps_meaning(model: onnx.ModelProto, to: int) -> bool:
    """Say whether every node means the same under another stamp: which of the two it was written for, nobody can tell."""
    described = [v for g in graph.graphs(model) for v in (*g.input, *g.output, *g.value_info)]
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in described if v.type.tensor_type.HasField("shape")}
    return not any(
        min(to, stamped) < CHANGED_MEANING.get(p.node.op_type, 0) <= max(to, stamped) and not _same_in_both(p.node, ranks)
        for p, stamped in _standard(model)
    )


def _same_in_both(node: onnx.NodeProto, ranks: dict[str, int]) -> bool:
    """Whether a node is in a form whose meaning did not change: along the last axis, or with the statistics that it is given."""
    if node.op_type == "BatchNormalization":
        return len(node.output) == 1 and not graph.attributes(node).get("training_mode")
    if node.op_type not in ("Softmax", "LogSoftmax", "Hardmax"):
        return False
    rank = next((ranks[n] for n in (node.input[0], node.output[0]) if n in ranks), None)
    axis = graph.attributes(node).get("axis")
    return axis == -1 or (rank is not None and (rank == 2 if axis is None else axis == rank - 1))
