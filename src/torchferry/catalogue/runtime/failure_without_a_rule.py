"""RUN900: the rule of last resort."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Fault, Job, Location
from torchferry.whose_code import is_users, users_lines

DOING = {
    "inputs": "binding the example",
    "capture": "capturing the model",
    "translate": "translating the graph",
    "check": "checking the file",
    "verify": "comparing the file with the model",
    "generate": "writing texts with the file",
}


class FailureWithoutARule(Rule):
    """A stage failed for a reason that no rule knows.

    ## What happened
    Something was raised on the way which none of the rules recognises. It is told in its own words, with the innermost
    line of your code that it passed through, and with everything that was tried in the evidence.

    ## Do instead
    Look at the line named. Capture runs `forward` on stand-ins for tensors, which have a shape but no values: code that
    insists on real tensors, or hands them to another library, cannot be followed. If the model has no part in it, the
    fault is torchferry's: a report with a small model that shows it helps everybody.
    """

    code, stage, severity, since = "RUN900", "verify", "error", "0.1"
    last_resort = True

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for step in case.steps:
            if step.fault is not None:
                told = _telling(step.fault)
                attempts = tuple(f"{a.strategy}: {_telling(a.fault).line[:300]}" for a in step.attempts if a.fault is not None)
                yield Diagnosis(
                    self.code,
                    f"{DOING[step.stage]} failed: {told.type_name}: {told.line[:300]}",
                    help="no rule knows this one yet; the evidence is what was raised, in its own words",
                    location=_last_user_line(step.fault),
                    evidence=attempts or tuple(f"{f.type_name}: {f.line[:300]}" for f in step.fault.chain()),
                )
        for trial in case.failed[:1]:
            words = "; ".join(d.words for d in trial.differences) or trial.note
            yield Diagnosis(
                self.code,
                f"the file and the model disagree in the trial `{trial.name}`: {words}",
                help="no rule knows the cause; `result.inputs(trial)` gives the feeds that show it",
            )


def _telling(fault: Fault) -> Fault:
    """Return the innermost cause that says something."""
    return next((f for f in reversed(list(fault.chain())) if f.text.strip()), fault)


def _last_user_line(fault: Fault) -> Location:
    """Return the innermost line of the user's own code that a fault passed through, or that its words quote."""
    for link in reversed(list(fault.chain())):
        quoted = users_lines(link.text)  # torch writes the stack of an operator into its messages
        if passed := [*quoted, *((f.file, f.line) for f in link.frames if is_users(f.file))]:
            return Location(*passed[-1])
    return Location()


def bad() -> Job:
    import traceback

    import torch

    class Suspicious(torch.nn.Module):
        def forward(self, x):
            if any("torch/export/" in frame.filename for frame in traceback.extract_stack()):
                raise OSError("this model does not like to be watched")
            return x * 2

    return Job(Suspicious(), (torch.ones(2, 3),))


def good() -> Job:
    import torch

    class Trusting(torch.nn.Module):
        def forward(self, x):
            return x * 2

    return Job(Trusting(), (torch.ones(2, 3),))
