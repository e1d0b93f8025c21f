"""What the rules of the capture stage look at: the lines that stopped a capture, and the rewrites that clear them."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.records import Case, Diagnosis, Edit, Fault, Finding, Location, Repair, Safety

WHY = "a capture runs the code on stand-in tensors, which have sizes but no values"


def stops(case: Case, *kinds: str) -> Iterator[Finding]:
    """Yield the lines that stopped the capture and are of these kinds."""
    for finding in case.findings("data-dependent"):
        if finding.facts["kind"] in kinds:
            yield finding


def pinned(finding: Finding) -> bool:
    """Say whether a line stopped the capture by fixing a size that should move."""
    words = ("Constraints violated", "conflicts between user-specified ranges", "specialized it to be a constant")
    return any(w in finding.facts["text"] for w in words)


def rewrites(case: Case, found: Diagnosis, title: str, safety: Safety = "safe", changes: str = "") -> Iterator[Repair]:
    """Yield the rewrites under which the capture succeeded, all lines at once; then the same with both sides computed."""
    for finding in case.findings("rewrites"):
        sites = list(finding.facts["sites"])
        more = f", and {len(sites) - 1} more line{'s' if len(sites) > 2 else ''}" if len(sites) > 1 else ""
        yield Repair(found.code, title + more, Edit("capture", "rewrite", {"sites": sites}), safety, changes)
        both = [{**s, "how": "where"} if s["kind"] in ("branch", "ternary") else s for s in sites]
        if both != sites:
            words = f"{title}, both sides computed{more}"
            yield Repair(found.code, words, Edit("capture", "rewrite", {"sites": both}), safety, changes)


def place(finding: Finding) -> Location:
    """Return where a finding is, or nowhere."""
    return finding.location or Location()


def raised(case: Case, *phrases: str) -> Fault | None:
    """Return the fault, among those of all strategies, that speaks in one of these phrases."""
    step = case.step("capture")
    faults = [a.fault for a in step.attempts if a.fault is not None] if step is not None else []
    for fault in [*([step.fault] if step and step.fault else []), *faults]:
        if any(p in link.text or p == link.type_name for link in fault.chain() for p in phrases):
            return fault
    return None


def stopped_at(case: Case) -> Location:
    """Return the line at which the capture stopped, or nowhere."""
    found = case.findings("stopped")
    return place(found[0]) if found else Location()
