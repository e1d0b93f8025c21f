"""CAP007."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.edits.capture import Piecewise, Rewrite
from torchferry.guards import holds, words
from torchferry.records import Case, Diagnosis, Job, Repair, Trial, findings


class BranchOnSize(Rule):
    """The program is right only for some sizes

    ## What happened
    Python code compared a size, or computed with it, and the capture followed the way that the example's size takes. For
    sizes on the other side the file gives wrong answers, or none. The line that did it is a condition of the whole program,
    which no ONNX file carries along.

    ## Do instead
    Write code that is the same for all sizes: integer arithmetic on sizes (`n // 2`, not `int(0.5 * n)`), padding that may be
    zero instead of `if n % 4`, `torch.cond` on the size. Or ask for the sizes on one side only: `ranges={"length": (9, None)}`.

    ## Repair safety
    Safe: the branch becomes an ONNX `If` on the size, both sides in the graph; or the model is captured once for each side
    and the pieces are joined. Every side is compared with the model as it was written.
    """

    code, stage = "CAP007", "capture"
    explains = frozenset({"NUM002", "NUM003"})  # the wrong or missing answers at those sizes

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.GuardNarrows):
            guard = words(finding.guard)
            trial = broken(case, finding)
            if trial is None:
                if case.fault("verify") is not None and finding.guard.startswith("Eq("):
                    yield self._unproven(finding, guard)
                continue
            sizes = ", ".join(f"{name}={n}" for name, n in trial.sizes.items())
            yield Diagnosis(
                self.code,
                f"the captured program holds only while `{guard}`; at {sizes} it is wrong",
                "write code that is the same for all sizes, or ask for sizes on one side only with `ranges=`",
                clues.place(finding),
                (f"guard: {guard}", *(f"{d.output}: {d.words}" for d in trial.differences[:2])),
            )

    def _unproven(self, finding: findings.GuardNarrows, guard: str) -> Diagnosis:
        sizes = ", ".join(f"{name}={n}" for name, n in finding.sizes.items())
        return Diagnosis(
            self.code,
            f"the captured program holds only while `{guard}`, which is false at {sizes}; and the file does not run at all",
            "write code that is the same for all sizes, or ask for sizes on one side only with `ranges=`",
            clues.place(finding),
            (f"guard: {guard}",),
        )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        for finding in case.findings(findings.GuardNarrows):
            if clues.place(finding) != found.location:
                continue
            for site in finding.sites:
                title = f"the branch in line {site.line} put into the graph, for sizes on both sides"
                yield Repair(self.code, title, Rewrite((site,)))
            title = f"captured for both sides of `{words(finding.guard)}` and joined"
            yield Repair(self.code, title, Piecewise(finding.guard))


def broken(case: Case, finding: findings.GuardNarrows) -> Trial | None:
    """Return a trial that failed at sizes where the guard does not hold; None as long as there is no such thing."""
    verified = case.value("verify")
    if verified is None:
        return None
    for trial in verified.failed:
        if holds(finding.guard, trial.sizes) is False:
            return trial
    return None


def bad() -> Job:
    """Another pooling for long inputs."""
    import torch

    class Pool(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[1] > 8:
                return x.mean(1)
            return x.amax(1)

    return Job(Pool().eval(), (torch.rand(2, 12, 4),))


def good() -> Job:
    """One pooling for all lengths."""
    import torch

    class Pool(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(1)

    return Job(Pool().eval(), (torch.rand(2, 12, 4),))
