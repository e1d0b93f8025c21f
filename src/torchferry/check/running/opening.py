"""Why a runtime refuses to open a model: what the graph shows, all at once; else what the runtime's own words name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from torchferry import releases
from torchferry.check.passes import decompose
from torchferry.check.reading import external, graph, structure
from torchferry.check.support import operators, stamp
from torchferry.check.support.node_probe import NodeProber, may_be_asked
from torchferry.check.types import conflicts, mismatch
from torchferry.check.types.type_inference import Types, infer
from torchferry.foreign import onnxruntime as ort
from torchferry.foreign import onnxruntime_messages
from torchferry.records import Fault, Finding, Location
from torchferry.records.findings import AtenOperator, NodeFailure, NodeNotInOpset, RuntimeDied, RuntimeRefused, UnusedImport
from torchferry.releases import Target
from torchferry.worker import DEATHS, Worker


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a file is opened: for whom (None: the installed runtime), in which worker, beside which data, with what scratch."""

    asked: Target | None
    worker: Worker
    home: Path
    own: str
    scratch: Path

    @property
    def target(self) -> Target:
        """What the file must open in."""
        return self.asked or releases.parse(None)


def explain(model: onnx.ModelProto, fault: Fault, site: Opening) -> Sequence[Finding]:
    """Return why opening failed, the nearest reasons first: each group is looked at only when those before are clean."""
    found: Sequence[Finding] = [
        *external.findings(model, site.home, site.own),
        *_explaining(stamp.findings(model, site.target)),
        *structure.findings(model),
    ]
    if found:
        return found
    found = [*stamp.misstamped(model, site.target), *operators.unknown_operators(model)]
    if found:
        return [_with_recipe(model, f) for f in found]
    if (nodes := graph.written_out(model)) > graph.MOST_NODES or graph.nested(model) > graph.MOST_DEEP:
        return [_too_many(model, fault, nodes)]
    flat = graph.flat(model)
    types = infer(flat)
    if found := conflicts.findings(flat, types):
        return found
    prober = NodeProber(site.worker, flat, site.scratch)
    if onnxruntime_messages.lacks_kernel(fault.text) and (found := operators.missing(flat, types, prober, site.target)):
        return found
    fault = _named_fault(flat, fault, site)
    return mismatch.findings(flat, fault) or [_refusal_at(flat, fault, prober, types)]


def _too_many(model: onnx.ModelProto, fault: Fault, nodes: float) -> RuntimeRefused | RuntimeDied:
    """Return the refusal with how many nodes there are: nobody looks at each of them."""
    many = f"{nodes:.1g} nodes once its functions are written out" if nodes < math.inf else "a function that calls itself"
    if nodes < graph.MOST_NODES:
        many = f"functions that call each other {graph.nested(model):,} deep"
    return refusal(model, replace(fault, text=f"{fault.text}; the file comes to {many}"))


def _named_fault(model: onnx.ModelProto, fault: Fault, site: Opening) -> Fault:
    """Return the same refusal of a copy in which every node has a name, so that the words can name it."""
    if all(p.node.name for p in graph.places(model)):
        return fault
    file = site.scratch / "named.onnx"
    file.write_bytes(graph.named(model).SerializeToString())
    again = site.worker.open(file, data_folder=str(site.home))
    return again if isinstance(again, Fault) else fault


def _refusal_at(model: onnx.ModelProto, fault: Fault, prober: NodeProber, types: Types) -> RuntimeRefused | RuntimeDied:
    """Return the refusal with its place; where the words name none, the node that is refused in the same words alone."""
    found = refusal(model, fault)
    if not isinstance(found, RuntimeRefused) or (found.location and found.location.onnx_node) or found.tensor is not None:
        return found
    for place in graph.nodes_of(model.graph):
        if may_be_asked(place.node, types.of):
            alone = prober.fault(place.node, types.of)
            if alone is not None and ort.said(alone.text) == found.text:
                return replace(found, location=Location(onnx_node=place.label, op=place.node.op_type))
    return found


def _explaining(found: list[Finding]) -> list[Finding]:
    """Leave out unused imports where something else is wrong with the stamps; alone they may be the reason."""
    return [f for f in found if not isinstance(f, UnusedImport)] or found


def _with_recipe(model: onnx.ModelProto, finding: Finding) -> Finding:
    if not isinstance(finding, NodeNotInOpset | AtenOperator):
        return finding
    place = next((p for p in graph.places(model) if p.label == (finding.location and finding.location.onnx_node)), None)
    return replace(finding, recipe=place is not None and decompose.can(place.node))


def refusal(model: onnx.ModelProto | None, fault: Fault) -> RuntimeRefused | RuntimeDied:
    """Return the runtime's refusal in its own words, with the place that they name."""
    if fault.type_name in DEATHS:
        return RuntimeDied(NodeFailure(fault.text))
    node, op = onnxruntime_messages.node(fault.text) or ("", "")
    tensor = onnxruntime_messages.tensor(fault.text)
    return RuntimeRefused(ort.said(fault.text), tensor, location=Location(onnx_node=node or None, op=op or None))
