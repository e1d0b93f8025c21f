"""What the rules about special parts of a model look at: whether a case failed, and which parts and lines were found."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.records import Case, Finding, Location
from torchferry.whose_code import users_lines

# what a failed capture is also reported as, when it is only the consequence of a part that had to be prepared first
CONSEQUENCES = frozenset({f"CAP{n:03d}" for n in (1, 2, 3, 4, 5, 6, 7, 12, 13, 17)} | {f"TRN{n:03d}" for n in (1, 2, 4, 5)})


def failed(case: Case) -> bool:
    """Say whether a file was not made, or is wrong."""
    verified = case.value("verify")
    return any(step.fault is not None for step in case.steps) or bool(verified is not None and verified.failed)


def made(case: Case) -> bool:
    """Say whether there is a file at all."""
    return case.value("translate") is not None


def texts(case: Case) -> str:
    """Return all that the stages and strategies said when they failed."""
    faults = [s.fault for s in case.steps if s.fault] + [a.fault for s in case.steps for a in s.attempts if a.fault]
    return "\n".join(link.text for fault in faults for link in fault.chain())


def listed(findings: tuple[Finding, ...], most: int = 3) -> str:
    """Return the parts of a model in words: `a`, `b` and 4 more."""
    names = list(dict.fromkeys(f"`{f.location.module_path}`" for f in findings if f.location and f.location.module_path))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def first(findings: tuple[Finding, ...]) -> Location:
    """Return where the first of some findings is."""
    return next((f.location for f in findings if f.location), Location())


def nodes_of(case: Case, dtype: str) -> Iterator[Location]:
    """Yield where the captured program computes in a dtype: the user's lines, where they are known."""
    captured = case.value("capture")
    program = captured.program if captured is not None else None
    for node in program.graph.nodes if program is not None else ():
        if str(getattr(node.meta.get("val"), "dtype", "")) == f"torch.{dtype}" and node.op == "call_function":
            lines = users_lines(node.meta.get("stack_trace") or "")
            file, line = lines[-1] if lines else (None, None)
            yield Location(file, line, op=str(node.target))
