"""NUM007: the file is right; onnxruntime's optimiser makes it wrong when it is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.edits.translate import GuardPadBeforeMaxpool, SessionOptions
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings


class WrongOnlyWhenOptimisedByOnnxruntime(Rule):
    """The file is right, but ONNX Runtime's optimiser makes it wrong when it is loaded.

    ## What happened
    With optimisations off the outputs are the model's; at ONNX Runtime's default level they are not. One of its rewrites is
    not valid for this graph: `Pad_Fusion`, for one, folds a zero `Pad` into a `MaxPool`, which pads with minus infinity.
    Where the padding is wider than the window, the rewritten graph does not even load.

    ## Do instead
    Create the session with `disabled_optimizers=[...]` and the name given, or write the operation in a way that the rewrite
    does not match, since most users run with the defaults.

    ## Repair safety
    Safe for `Pad_Fusion`: the `Pad` is written so that the rewrite leaves it alone, and the file is right with the defaults.
    Any other optimiser can only be switched off in the session, which everybody who runs the file must then do.
    """

    code, stage, severity, since = "NUM007", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in _found(case):
            names = ", ".join(f"`{n}`" for n in finding.optimisers) or "an optimisation that could not be singled out"
            quoted = ", ".join(repr(n) for n in finding.optimisers)
            how = f"`disabled_optimizers=[{quoted}]`" if quoted else "optimisations off"
            how = f"create the session with {how}, or write the operation so that the rewrite does not match"
            if isinstance(finding, findings.RefusedWhenOptimised):
                line = finding.error.strip().split("\n", 1)[0][-200:]
                told = f"onnxruntime opens the file without its optimisations and not with {names}: {line}"
                yield Diagnosis(self.code, told, how, finding.location or Location(), ("stage: onnxruntime's optimiser",))
            else:
                told = f"{output(finding.seen)} is right without onnxruntime's optimisations and wrong with {names}"
                yield diagnosis(self.code, finding, f"{told}: {finding.seen.words}", how)

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        for names in [list(finding.optimisers) for finding in _found(case)]:
            if names == ["Pad_Fusion"]:
                yield Repair(self.code, "keep onnxruntime from folding the padding into the pooling", GuardPadBeforeMaxpool())
            elif names:
                off = SessionOptions(tuple(names))
                yield Repair(self.code, f"switch {', '.join(names)} off", off, "unsafe", "every session must switch it off")


def _found(case: Case) -> tuple[findings.WrongWhenOptimised | findings.RefusedWhenOptimised, ...]:
    return (*case.findings(findings.WrongWhenOptimised), *case.findings(findings.RefusedWhenOptimised))


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Pool(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.Conv2d(1, 1, 1)

        def forward(self, x):
            return torch.max_pool2d(torch.nn.functional.pad(self.mix(x), (1, 1, 1, 1)), 3)

    path = Path(tempfile.mkdtemp()) / "pool.onnx"
    model, example = Pool().eval(), (torch.randn(1, 1, 7, 7),)
    torch.onnx.export(model, example, str(path), input_names=["x"], verbose=False)
    return Job(model, example, onnx=path)


def good() -> Job:
    import torch

    class Pool(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.Conv2d(1, 1, 1)

        def forward(self, x):
            return torch.max_pool2d(torch.relu(self.mix(x)), 3, padding=1)

    return Job(Pool().eval(), (torch.randn(1, 1, 7, 7),))
