"""What the rules of the capture stage look at: the lines that stopped a capture, and the rewrites that clear them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from torchferry.edits.capture import Rewrite
from torchferry.foreign.torch_messages import fixes_a_size
from torchferry.records import Case, Diagnosis, Finding, Location, Repair, Safety, findings

WHY = "a capture runs the code on stand-in tensors, which have sizes but no values"


def stops(case: Case, *kinds: str) -> Iterator[findings.DataDependent]:
    """Yield the lines that stopped the capture and are of these kinds."""
    for finding in case.findings(findings.DataDependent):
        if finding.kind in kinds:
            yield finding


def pinned(finding: findings.DataDependent) -> bool:
    """Say whether a line stopped the capture by fixing a size that should move."""
    return fixes_a_size(finding.text)


def rewrites(case: Case, found: Diagnosis, title: str, safety: Safety = "safe", changes: str = "") -> Iterator[Repair]:
    """Yield the rewrites under which the capture succeeded, all lines at once; then the same with both sides computed."""
    for finding in case.findings(findings.RewritesFound):
        sites = finding.sites
        more = f", and {len(sites) - 1} more line{'s' if len(sites) > 2 else ''}" if len(sites) > 1 else ""
        yield Repair(found.code, title + more, Rewrite(sites), safety, changes)
        both = tuple(replace(s, how="where") if s.how == "cond" else s for s in sites)
        if both != sites:
            yield Repair(found.code, f"{title}, both sides computed{more}", Rewrite(both), safety, changes)


def place(finding: Finding) -> Location:
    """Return where a finding is, or nowhere."""
    return finding.location or Location()


def stopped(case: Case) -> tuple[findings.CaptureStopped, ...]:
    """Return the lines that stopped a capture; the first one is what every strategy stopped at, or may have."""
    return case.findings(findings.CaptureStopped) if case.fault("capture") is not None else ()


def raised(case: Case, asked: Callable[[str], bool]) -> bool:
    """Say whether one of the strategies stopped with words of which this holds."""
    step = case.step("capture")
    faults = [step.fault, *(a.fault for a in step.attempts)] if step is not None else []
    return any(asked(f"{link.type_name}: {link.text}") for fault in faults if fault for link in fault.chain())
