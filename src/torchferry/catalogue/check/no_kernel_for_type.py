"""CHK014: no-kernel-for-type."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastAround, ConvertOpset, Decompose, ModerniseOldForms, OtherType, Retype
from torchferry.records import Case, Finding, Job


class NoKernelForType(FindingRule):
    """The runtime has no implementation of an operator for this type

    ## What happened
    The operator is standard, but the runtime implements it for other element types only: many have float and not double,
    Resize has int32 and not int64. The version in ONNX Runtime's message, `Conv(11)`, is that of the operator, not the
    model's opset.
    ## Do instead
    Compute in float32 where that is enough, or cast around this operator.
    ## Repair safety
    Safe: a newer form of the operator is taken where it has the type; else the type is changed for this node alone and
    changed back behind it (a double is computed as float there). bfloat16, which has few implementations, is computed in
    float throughout.
    """

    code, severity = "CHK014", "error"
    kinds = ("no-kernel",)

    def message(self, finding: Finding) -> str:
        facts = finding.facts
        name = f"{facts['domain']}::{facts['op']}" if facts["domain"] else facts["op"]
        since = f"({facts['since']})" if facts["since"] else ""
        return f"{at(finding)}: the runtime has no CPU implementation of {name}{since} for {', '.join(facts['types'])}"

    def help(self, finding: Finding) -> str:
        instead = finding.facts["instead"]
        if instead is None:
            return "replace the operator, or use a provider that has it (CUDA, ...)"
        return SAYS[instead["how"]].format_map(instead)

    def offers(self, case: Case, finding: Finding) -> Iterator[Offer]:
        found = self.found(case)
        if "bfloat16" in finding.facts["types"]:
            yield "compute in float instead of bfloat16", Retype("bfloat16", "float"), "safe"
        instead = finding.facts["instead"]
        if instead is None:
            return
        if instead["how"] == "opset":
            yield f"convert to opset {instead['to']}", ConvertOpset(instead["to"]), "safe"
        elif instead["how"] == "modernise":
            yield "write it as opset 7 has it", ModerniseOldForms(7), "safe"
        elif instead["how"] == "decompose":
            nodes = tuple(node(f) for f in found if f.location and (f.facts["instead"] or {}).get("how") == "decompose")
            yield "write it out in operators that the runtime has", Decompose(nodes), "safe"
        else:
            around = [f for f in found if (f.facts["instead"] or {}).get("how") in ("cast", "attribute")]
            entries = tuple(_other_type(f) for f in around if f.location)
            yield f"compute it in {instead['to']}", CastAround(entries), "safe"


def _other_type(finding: Finding) -> OtherType:
    said = finding.facts["instead"]
    inputs, places = tuple(said.get("inputs", ())), tuple(said.get("places", ()))
    return OtherType(node(finding), said["how"], said.get("attribute", ""), said["from"], said["to"], inputs, places)


SAYS = {
    "opset": "opset {to} has it for this type: convert the model",
    "modernise": "its form is from before opset 7: write it in a newer one",
    "decompose": "write it out in simpler operators, or use the model as it was before it was optimised for a GPU",
    "cast": "cast from {from} to {to} before this node, and back behind it",
    "attribute": "make it in {to} and cast to {from} behind it",
}


def bad() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (bool[N] c, bool[N] a, bool[N] b) => (bool[N] y) { y = Where (c, a, b) }'
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
