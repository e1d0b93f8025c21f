"""INP017: program-not-trusted."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, example_folder
from torchferry.records import Job, findings


class ProgramNotTrusted(FindingRule[findings.ProgramNotTrusted]):
    """The model is a file with code in it, and nobody said that it may be run

    ## What happened
    A `.pt2` file is more than a graph: its example inputs, and weights and constants of some kinds, are Python pickles, and its
    sizes are expressions that sympy evaluates as Python. PyTorch has no way to read one without running what stands there,
    with all that you may do on this machine. Nothing of the file was read.

    ## Do instead
    If the file is yours, or comes from somebody whose programs you would run, say so: `trust=True` in Python, `--trust` on the
    command line. If it comes from elsewhere, ask for the model's source and for its weights as safetensors, or as a state dict
    that `torch.load(..., weights_only=True)` takes: these hold no code. Looking at a stranger's file belongs into a container.
    """

    code, stage, severity, since = "INP017", "inputs", "error", "0.1"

    def message(self, finding: findings.ProgramNotTrusted) -> str:
        return f"to read `{finding.file}` runs whatever code is in it, and it was not said to be trusted"

    def help(self, finding: findings.ProgramNotTrusted) -> str:
        return "if you would run a program from whoever made it: `trust=True`, or `--trust` on the command line"


def program() -> str:
    import torch

    path = example_folder() / "program.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),)), path)
    return str(path)


def bad() -> Job:
    import torch

    return Job(program(), (torch.ones(3, 4),))


def good() -> Job:
    """The same, by somebody who knows where it comes from."""
    import torch

    return Job(program(), (torch.ones(3, 4),), trust=True)
