"""Stamped: another opset stamp is right where no node of the file means something else under it.

claim         the nodes mean under the new stamp what they were written to mean
precondition  for which stamp they were written nobody can tell: every one under which a node is valid may be it
proof         each node gives the same under the old stamp and the new one, on the values that reach it; and the file
              as a whole gives the same under every stamp under which all its nodes are valid
"""

from __future__ import annotations

import onnx

from torchferry.check.passes import apply
from torchferry.check.proof.alone import given
from torchferry.check.proof.evaluated import alike
from torchferry.check.proof.mending import Mending
from torchferry.check.reading import graph, schemas
from torchferry.check.running.trace import Tracer
from torchferry.check.support import stamp
from torchferry.edits.check import StampOpset
from torchferry.records import Fault


def why_not(mending: Mending, edit: StampOpset) -> str:
    """Return why another stamp may mean something else; nothing where it was shown not to."""
    if edit.domain:
        return _other_domain(mending, edit.domain, edit.to)
    old = graph.opset(mending.raw)
    return (_under_both(mending, old, edit.to) if old is not None else "") or _under_all(mending)


def _under_both(mending: Mending, old: int, new: int) -> str:
    """Return the node that means something else under the old stamp, where it is valid under that at all."""
    asked = [n for n in mending.model.graph.node if _changed(n, old, new)]
    inner = [p for p in graph.places(mending.model) if p.graph is not mending.model.graph and _changed(p.node, old, new)]
    if inner and not stamp.keeps_meaning(mending.raw, new):
        return f"`{inner[0].label}` means something else under opset {new}, and stands where it cannot be run alone"
    feed = next(iter(mending.asked()), None)
    if feed is None or not asked:
        return ""
    known = mending.values(feed, [i for n in asked for i in n.input])
    for node in asked:
        one, two = (given(mending, node, known, v) for v in (old, new))
        if one is None or two is None:
            if stamp.keeps_meaning(_only(mending.model, node, old), new):
                continue
            return f"`{graph.label(node)}` cannot be run under opset {old}, and may mean something else under {new}"
        if not all(alike(a, b) for a, b in zip(one, two, strict=False)):
            return (
                f"`{graph.label(node)}` gives something else under opset {old}, with which the file is stamped, than under {new}"
            )
    return ""


def _changed(node: onnx.NodeProto, old: int, new: int) -> bool:
    """Whether a node is valid under both stamps, and another version of its operator under each."""
    if node.domain not in schemas.STANDARD or any(schemas.misfit(node, v) is not None for v in (old, new)):
        return False
    return schemas.since(node.op_type, old) != schemas.since(node.op_type, new)


def _under_all(mending: Mending) -> str:
    """Return the stamp under which all nodes are valid too, and the file gives something else."""
    nodes = [p.node for p in graph.places(mending.model) if p.node.domain in schemas.STANDARD]
    forms: dict[tuple[int | None, ...], int] = {}
    for version in range(stamp.LOWEST, schemas.NEWEST + 1):
        if all(schemas.misfit(n, version) is None for n in nodes):
            forms.setdefault(tuple(schemas.since(n.op_type, version) for n in nodes), version)
    for version in forms.values():
        other = onnx.ModelProto()
        other.CopyFrom(mending.model)
        apply(other, StampOpset(version))
        tracer = Tracer(mending.worker, other, mending.mended_home, mending.scratch)
        for feed in mending.asked():
            answer, usual = tracer.run(other, feed, level="all"), mending.outputs(feed)
            if isinstance(answer, Fault) or usual is None:  # no runtime takes it so: then nobody can have meant it to be run so
                continue
            if not all(alike(a, b) for a, b in zip(answer, usual, strict=False)):
                return f"under opset {version} every node is valid too, and the file gives something else"
    return ""


def _other_domain(mending: Mending, domain: str, to: int) -> str:
    old = graph.opset(mending.raw, domain) or to
    for place in graph.places(mending.model):
        node = place.node
        if node.domain == domain and schemas.since(node.op_type, old, domain) != schemas.since(node.op_type, to, domain):
            return f"`{place.label}` is of another version under {domain} {to}"
    return ""


def _only(model: onnx.ModelProto, node: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """Return a model of one node, with what is known of the shapes around it, under a stamp."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.append(node)
    apply(made, StampOpset(opset))
    return made
