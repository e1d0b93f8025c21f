"""RUN902: process-died."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ProcessDied(Rule):
    """The process that did the work was ended

    ## What happened
    The command line does its work in a process of its own, so that a crash or a hang ends with an answer. This one died of a
    signal (native code of torch or of the model crashed, or the system took the memory back), ended itself in the middle
    (something called `os._exit`), or told nothing for longer than the time limit and was ended. The stage, and where it is known
    your own line, say where that was.
    ## Do instead
    After a crash, try other versions of torch and of the extensions that the model uses. After SIGKILL, free some memory or try a
    smaller example. Where it only needs longer, allow more with `--time-limit SECONDS`.
    """

    code, stage, severity, since = "RUN902", "verify", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ProcessEnded):
            title, message, advice = _told(finding)
            yield Diagnosis(self.code, message, advice, finding.location or Location(), title=title)


def _told(finding: findings.ProcessEnded) -> tuple[str, str, str]:
    """Return the title, the message and the help for a process that did not end by itself."""
    during = f" in {finding.stage}" if finding.stage else ""
    if finding.time_limit is not None:
        message = "the work was ended at the time limit; torch or the model itself hangs, or needs longer"
        return f"nothing happened for {finding.time_limit:g} s{during}", message, "allow more with `--time-limit SECONDS`"
    if finding.how == "SIGKILL":
        message = "the process was killed from outside; most often the system ran out of memory"
        return f"the process was killed{during}", message, "free some memory, or try a smaller example"
    if finding.how.startswith("exit code"):
        message = f"something that the model calls ended the process with {finding.how}, before the work was done"
        return f"the process ended{during}", message, "take the call out that ends it: `os._exit`, or what closes its files"
    message = f"torch, or native code that the model calls, ended the process with {finding.how}"
    return f"the process died{during}", message, "try other versions of torch and its extensions; `torchferry doctor` shows yours"


SHOWN = {
    "bad": """```sh
$ torchferry export model.py:crashes_in_native_code -o model.onnx
the process died in capture
```"""
}


def bad() -> Case:
    from torchferry.cli.supervise import Ending, as_result

    return as_result(Ending(None, "capture", "SIGSEGV"), "export").history.best


def good() -> Job:
    import torch

    return Job(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
