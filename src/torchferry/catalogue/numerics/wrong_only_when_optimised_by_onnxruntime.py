"""NUM007: the file is right; onnxruntime's optimiser makes it wrong when it is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job


class WrongOnlyWhenOptimisedByOnnxruntime(Rule):
    """The file is right, but ONNX Runtime's optimiser makes it wrong when it is loaded.

    ## What happened
    With optimisations off the outputs are the model's; at ONNX Runtime's default level they are not. One of its rewrites is
    not valid for this graph: `Pad_Fusion`, for one, folds a zero `Pad` into a `MaxPool`, which pads with minus infinity.

    ## Do instead
    Create the session with `disabled_optimizers=[...]` and the name given, or write the operation in a way that the rewrite
    does not match, since most users run with the defaults.
    """

    code, stage, severity, since = "NUM007", "verify", "error", "0.1"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings("wrong-only-when-optimised-by-onnxruntime"):
            facts = finding.facts
            names = ", ".join(f"`{n}`" for n in facts["optimisers"]) or "an optimisation that could not be singled out"
            quoted = ", ".join(repr(n) for n in facts["optimisers"])
            how = f"`disabled_optimizers=[{quoted}]`" if quoted else "optimisations off"
            yield diagnosis(
                self.code,
                finding,
                f"{output(facts)} is right without onnxruntime's optimisations and wrong with {names}: {facts['words']}",
                f"create the session with {how}, or write the operation so that the rewrite does not match",
            )


def bad() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Pool(torch.nn.Module):
        def forward(self, x):
            return torch.max_pool2d(torch.nn.functional.pad(x, (1, 1, 1, 1)), 3)

    path = Path(tempfile.mkdtemp()) / "pool.onnx"
    example = (torch.rand(1, 1, 7, 7),)
    torch.onnx.export(Pool(), example, str(path), dynamo=False, input_names=["x"])
    return Job(Pool(), example, onnx=path)


def good() -> Job:
    import tempfile
    from pathlib import Path

    import torch

    class Pool(torch.nn.Module):
        def forward(self, x):
            return torch.max_pool2d(torch.relu(x), 3, padding=1)

    path = Path(tempfile.mkdtemp()) / "pool.onnx"
    example = (torch.rand(1, 1, 7, 7),)
    torch.onnx.export(Pool(), example, str(path), dynamo=False, input_names=["x"])
    return Job(Pool(), example, onnx=path)
