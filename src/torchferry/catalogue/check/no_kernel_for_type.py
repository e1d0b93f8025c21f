"""CHK014: no-kernel-for-type."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastAround, ConvertOpset, Decompose, ModerniseOldForms, OtherType, Retype
from torchferry.records import Case, Job, findings


class NoKernelForType(FindingRule[findings.NoKernel]):
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

    def message(self, finding: findings.NoKernel) -> str:
        name = f"{finding.domain}::{finding.op}" if finding.domain else finding.op
        since = f"({finding.since})" if finding.since else ""
        return f"{at(finding)}: the runtime has no CPU implementation of {name}{since} for {', '.join(finding.types)}"

    def help(self, finding: findings.NoKernel) -> str:
        match finding.instead:
            case findings.NewerOpset(to):
                return f"opset {to} has it for this type: convert the model"
            case findings.ModernForm():
                return "its form is from before opset 7: write it in a newer one"
            case findings.WrittenOut():
                return "write it out in simpler operators, or use the model as it was before it was optimised for a GPU"
            case findings.ComputedInOtherType(was, to):
                return f"cast from {was} to {to} before this node, and back behind it"
            case findings.OtherAttribute(_, was, to):
                return f"make it in {to} and cast to {was} behind it"
        return "replace the operator, or use a provider that has it (CUDA, ...)"

    def offers(self, case: Case, finding: findings.NoKernel) -> Iterator[Offer]:
        if "bfloat16" in finding.types:
            yield "compute in float instead of bfloat16", Retype("bfloat16", "float"), "safe"
        alike = [(node(f), f.instead) for f in self.found(case) if f.location]
        match finding.instead:
            case findings.NewerOpset(to):
                yield f"convert to opset {to}", ConvertOpset(to), "safe"
            case findings.ModernForm():
                yield "write it as opset 7 has it", ModerniseOldForms(7), "safe"
            case findings.WrittenOut():
                nodes = tuple(name for name, instead in alike if isinstance(instead, findings.WrittenOut))
                yield "write it out in operators that the runtime has", Decompose(nodes), "safe"
            case findings.ComputedInOtherType(to=to) | findings.OtherAttribute(to=to):
                entries = tuple(entry for name, instead in alike if (entry := _other_type(name, instead)))
                yield f"compute it in {to}", CastAround(entries), "safe"


def _other_type(name: str, instead: findings.Instead | None) -> OtherType | None:
    """Return how a node is computed in another type, as the pass takes it; None where it is not."""
    match instead:
        case findings.ComputedInOtherType(was, to, inputs, places):
            return OtherType(name, from_=was, to=to, inputs=inputs, places=places)
        case findings.OtherAttribute(attribute, was, to):
            return OtherType(name, "attribute", attribute, was, to)
    return None


def bad() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (bool[N] c, bool[N] a, bool[N] b) => (bool[N] y) { y = Where (c, a, b) }'
    return Job(onnx=example_file(text))


def good() -> Job:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    return Job(onnx=example_file(text))
