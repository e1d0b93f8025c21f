"""CAP055."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchferry.catalogue import prepared_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import PrepareDense
from torchferry.records import Case, Diagnosis, Job, Repair, findings


class SparseTensor(Rule):
    """The model uses sparse tensors

    ## What happened
    ONNX has no arithmetic on sparse tensors that runtimes implement, so functions like `torch.sparse.mm` have no translation.

    ## Do instead
    Keep the matrix dense (`.to_dense()`) if it is not too large, or gather and add up the entries with `index_select` and
    `index_add`.

    ## Repair safety
    Safe: sparse constants are written out with their zeros, and functions of sparse tensors become those of dense ones. The
    file grows by the zeros.
    """

    code, stage = "CAP055", "capture"
    explains = clues.CONSEQUENCES

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        tensors, lines = case.findings(findings.SparseTensor), case.findings(findings.SparseFunction)
        if not (tensors or lines) or not clues.failed(case) or clues.made(case) or case.job.edits_for(PrepareDense):
            return
        names = ", ".join(f"`{f.name}` ({f.layout.removeprefix('torch.')})" for f in tensors)
        what = f"`{lines[0].code}`" if lines else names
        yield Diagnosis(
            self.code,
            f"{what} works on sparse tensors, which have no arithmetic in ONNX",
            "make the matrix dense, or let torchferry write it out with its zeros",
            clues.first(lines or tensors),
            (f"sparse: {names}",) if names else (),
        )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        yield Repair(self.code, "sparse tensors written out as dense ones", PrepareDense())


def bad() -> Job:
    """A graph convolution with a sparse adjacency."""
    return Job(_convolution(sparse=True), _example())


def good() -> Job:
    """A dense adjacency."""
    return Job(_convolution(sparse=False), _example())


def _convolution(sparse: bool) -> Any:
    import torch

    class Convolution(torch.nn.Module):
        def __init__(self, adjacency: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("adjacency", adjacency)
            self.linear = torch.nn.Linear(2, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(self.adjacency @ x)

    torch.manual_seed(0)
    adjacency = torch.eye(4).roll(1, 0)
    return Convolution(adjacency.to_sparse() if sparse else adjacency).eval()


def _example() -> tuple[Any, ...]:
    import torch

    return (torch.rand(4, 2),)
