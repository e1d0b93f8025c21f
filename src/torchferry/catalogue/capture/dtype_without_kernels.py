"""CAP051."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareFloat32Kernels
from torchferry.foreign.onnxruntime_messages import lacks_kernel, refuses_type
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings

Dtype = Literal["bfloat16", "float64"]


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
        if not told and not lacks_kernel(text) and not refuses_type(text):
            return
        dtype, places = _computed_in(case)
        if places:
            yield Diagnosis(
                self.code,
                f"the model computes in `{dtype}`, for which onnxruntime has no kernels of some operators",
                f"convert it with `model.float()`, or let torchferry compute in float32 behind {dtype} inputs and outputs",
                next((p for p in places if p.file), Location(op=places[0].op)),
                tuple(text.splitlines()[:1]),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        dtype, _ = _computed_in(case)
        title = f"computed in float32, each result rounded to {dtype}; inputs and outputs stay {dtype}"
        if dtype == "float64":
            yield Repair(self.code, f"{title}, where there is no kernel", PrepareFloat32Kernels(dtype))
        yield Repair(self.code, title, PrepareFloat32Kernels(dtype, all=True))


def _computed_in(case: Case) -> tuple[Dtype, list[Location]]:
    """Return the dtype without kernels that the captured program computes in, and where; bfloat16 where both stand in it."""
    places = list(clues.nodes_of(case, "bfloat16"))
    return ("bfloat16", places) if places else ("float64", list(clues.nodes_of(case, "float64")))


def bad() -> Job:
    """A bfloat16 convolution."""
    import torch

    torch.manual_seed(0)
    return Job(torch.nn.Conv1d(2, 3, 3, padding=1).to(torch.bfloat16).eval(), (torch.rand(2, 2, 8).to(torch.bfloat16),))


def good() -> Job:
    """The same in float32."""
    import torch

    return Job(torch.nn.Conv1d(2, 3, 3, padding=1).eval(), (torch.rand(2, 2, 8),))
