"""TRN020."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.guards import value_of
from torchferry.records import Case, Diagnosis, Job, Location, Trial, findings


class SizeFixedByTranslation(Rule):
    """The captured program takes other sizes, the graph made of it does not

    ## What happened
    The program that was captured has a size of an output as an expression over the sizes of the inputs. In the ONNX graph the
    same size is a plain number: a decomposition or a translation function computed it with the example's sizes and wrote down
    the result. At other sizes the file gives wrong answers, or none.

    ## Do instead
    Write the operation in another way that keeps the size (a reshape with `-1`, a slice up to `x.shape[1]`), or export with this
    size fixed. A translation function of your own must compute sizes with `Shape`, not read them off the example.
    """

    code, stage = "TRN020", "translate"
    explains = frozenset({"NUM002", "NUM003"})  # the wrong or missing answers at those sizes

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.OutputSizeFixed):
            trial = _shown(case, finding)
            if trial is not None:
                at = ", ".join(f"{name}={size}" for name, size in trial.sizes.items())
                yield Diagnosis(
                    self.code,
                    f"axis {finding.axis} of `{finding.output}` is {finding.says} in the captured program and always "
                    f"{finding.fixed} in the graph; at {at} the file is wrong",
                    "write the operation in a way that keeps the size, or export with this size fixed",
                    finding.location or Location(),
                    tuple(f"{d.output}: {d.words}" if d.output else d.words for d in trial.differences[:2]),
                )


def _shown(case: Case, finding: findings.OutputSizeFixed) -> Trial | None:
    """Return a trial that failed at sizes where the program and the graph differ; None as long as there is no such thing."""
    verified = case.value("verify")
    says, fixed = finding.says, finding.fixed
    return next((t for t in (verified.failed if verified else ()) if value_of(says, t.sizes) not in (None, fixed)), None)


def bad() -> Job:
    """A custom operator whose translation has the example's length written into it."""
    import torch
    from onnxscript import opset18

    import torchferry

    if not hasattr(torch.ops.torchferry_example, "doubled"):

        @torch.library.custom_op("torchferry_example::doubled", mutates_args=(), schema="(Tensor x) -> Tensor")
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x], 1)

        doubled.register_fake(lambda x: x.new_empty(x.shape[0], 2 * x.shape[1]))

        def translation(x):  # type: ignore[no-untyped-def]
            joined = opset18.Concat(x, x, axis=1)
            return opset18.Reshape(joined, opset18.Constant(value_ints=[-1, 12]))

        torchferry.register_op("torchferry_example::doubled", translation=translation)

    class Doubled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchferry_example.doubled(x) + 1  # type: ignore[no-any-return]

    return Job(Doubled().eval(), (torch.rand(4, 6),))


def good() -> Job:
    """The same in torch's own operators."""
    import torch

    class Doubled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x], 1) + 1

    return Job(Doubled().eval(), (torch.rand(4, 6),))
