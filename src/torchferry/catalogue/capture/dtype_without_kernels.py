"""CAP051."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareFloat32Kernels
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings

_REFUSED = ("NOT_IMPLEMENTED", "Could not find an implementation", "bfloat16", "tensor(double)", "no CPU implementation")


class DtypeWithoutKernels(Rule):
    """The model computes in a dtype that onnxruntime has no kernels for

    ## What happened
    onnxruntime on a CPU has hardly any kernels for bfloat16, and none for float64 in convolutions, pooling, recurrent layers
    and several activations. The file is valid, but it does not load.

    ## Do instead
    `model.float()` before the export, and float32 inputs; keep bfloat16 for a runtime on a GPU.

    ## Repair safety
    Safe: each operator computes in float32 and its result is rounded to the model's dtype; inputs and outputs keep theirs. For
    bfloat16 that is what torch's own kernels do, so the numbers are the same. For float64 it loses digits: at first only
    operators for which the runtime has no kernel are touched, and the outcome is compared as float32 is.
    """

    code, stage = "CAP051", "capture"
    explains = frozenset({"CHK014", "CHK015", "CHK024", "CHK025", "NUM003"})

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        if not clues.made(case) or any(e.all for e in case.job.edits_for(PrepareFloat32Kernels)):
            return
        told = [f for f in case.findings(findings.NoKernel) if {"bfloat16", "double"} & set(f.types)]
        text = clues.texts(case)
        if not told and not any(phrase in text for phrase in _REFUSED):
            return
        for dtype in ("bfloat16", "float64"):
            places = list(clues.nodes_of(case, dtype))
            if places:
                yield Diagnosis(
                    self.code,
                    f"the model computes in `{dtype}`, for which onnxruntime has no kernels of some operators",
                    f"convert it with `model.float()`, or let torchferry compute in float32 behind {dtype} inputs and outputs",
                    next((p for p in places if p.file), Location(op=places[0].op)),
                    tuple(text.splitlines()[:1]),
                )
                return

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        dtype = "bfloat16" if "`bfloat16`" in found.message else "float64"
        title = f"computed in float32, each result rounded to {dtype}; inputs and outputs stay {dtype}"
        if dtype == "float64":
            yield Repair(self.code, f"{title}, where there is no kernel", PrepareFloat32Kernels(dtype))
        yield Repair(self.code, title, PrepareFloat32Kernels(dtype, all=True))


def bad() -> Job:
    """A bfloat16 convolution."""
    import torch

    torch.manual_seed(0)
    return Job(torch.nn.Conv1d(2, 3, 3, padding=1).to(torch.bfloat16).eval(), (torch.rand(2, 2, 8).to(torch.bfloat16),))


def good() -> Job:
    """The same in float32."""
    import torch

    return Job(torch.nn.Conv1d(2, 3, 3, padding=1).eval(), (torch.rand(2, 2, 8),))
