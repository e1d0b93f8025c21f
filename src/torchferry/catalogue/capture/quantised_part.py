"""CAP050."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareQuantised
from torchferry.foreign.torch_messages import quantised_function
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class QuantisedPart(Rule):
    """A part of the model is quantised for torch's own kernels

    ## What happened
    `torch.ao.quantization` packs weights into objects that only torch's kernels can read, passes quantised tensors between
    layers, or puts in fake quantisers that ask a tensor whether they are switched on. No capture can follow any of these.

    ## Do instead
    Export the float model, and quantise the ONNX file with `onnxruntime.quantization`. Or let torchferry write out what the
    kernels compute.

    ## Repair safety
    Safe: weights are unpacked, and the same integers are multiplied, summed, scaled and rounded as torch's kernels do it,
    halves and NaN included. The file is compared with the quantised model, not with the float one.
    """

    code, stage = "CAP050", "capture"
    explains = clues.CONSEQUENCES

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        found = case.findings(findings.QuantisedPart)
        spoken = quantised_function(clues.texts(case))
        if not clues.failed(case) or not (found or spoken) or case.job.edits_for(PrepareQuantised):
            return
        kinds = ", ".join(sorted({f"`{f.type}`" for f in found})) or f"`{spoken}`"
        what = f"{clues.listed(found)} ({kinds})" if found else f"a call in forward ({kinds})"
        yield Diagnosis(
            self.code,
            f"quantised for torch's own kernels: {what}",
            "export the float model and quantise the file, or let torchferry write the integer arithmetic out",
            clues.first(found),
        )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        title = "quantised parts written out with the same integers and rounding"
        yield Repair(self.code, title, PrepareQuantised())
        if any("FakeQuant" in f.type for f in case.findings(findings.QuantisedPart)):
            yield Repair(self.code, "fake quantisers written out in plain arithmetic", PrepareQuantised("arithmetic"))


def bad() -> Job:
    """A dynamically quantised linear layer."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
        model = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear}, dtype=torch.qint8)
    return Job(model, (torch.rand(3, 4),))


def good() -> Job:
    """The float model."""
    import torch

    return Job(torch.nn.Sequential(torch.nn.Linear(4, 2)).eval(), (torch.rand(3, 4),))
