"""What the rules of the inputs stage look at: how the model's own example failed, in data."""

from __future__ import annotations

from torchferry.records import Case, Fault, Location, findings
from torchferry.whose_code import is_users


def failed_call(case: Case) -> Fault | None:
    """Return what the model raised on its own example, unless another reading of the arguments explains it."""
    if case.findings(findings.MisboundArgument) or not case.findings(findings.ExampleFailed):
        return None
    return case.fault("inputs")


def failed_example(case: Case) -> findings.ExampleFailed:
    """Return what is known of an example that failed, and of the model; empty where none did."""
    return next(iter(case.findings(findings.ExampleFailed)), findings.ExampleFailed(()))


def user_line(fault: Fault) -> Location:
    """Return the innermost line of the user's own code that a fault passed through."""
    for link in reversed(list(fault.chain())):
        for frame in reversed(link.frames):
            if is_users(frame.file):
                return Location(file=frame.file, line=frame.line)
    return Location()
