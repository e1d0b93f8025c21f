"""What all rules of last resort share: they tell the innermost fault in its own words when no other rule knows it."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Fault, Location

OURS = ("site-packages", "dist-packages", "torchferry", "<frozen", "<string>", "<eval_with_key>")


class Unexplained(Rule):
    """The base of the rules of last resort."""

    last_resort = True
    doing = ""  # "capturing the model"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        fault = case.fault(self.stage)
        if fault is None:
            return
        told = root(fault)
        yield Diagnosis(
            self.code,
            f"{self.doing} failed: {first_line(told)}",
            help="no rule knows this one yet; the lines below are what was raised. A report with a small model that shows it helps everybody",
            location=last_user_line(fault),
            evidence=tuple(f"{f.type_name}: {first_line(f)}" for f in fault.chain()),
        )


def root(fault: Fault) -> Fault:
    """Return the innermost cause that says something."""
    return [f for f in fault.chain() if f.text.strip()][-1] if any(f.text.strip() for f in fault.chain()) else fault


def first_line(fault: Fault) -> str:
    """Return what a fault says, in one line of bearable length."""
    lines = [line.strip() for line in fault.text.strip().splitlines() if line.strip()]
    return (lines[0] if lines else fault.type_name)[:300]


def last_user_line(fault: Fault) -> Location:
    """Return the innermost line of the user's own code that a fault passed through."""
    for link in reversed(list(fault.chain())):
        for frame in reversed(link.frames):
            if not any(part in frame.file for part in OURS) and "/lib/python" not in frame.file:
                return Location(file=frame.file, line=frame.line)
    return Location()
