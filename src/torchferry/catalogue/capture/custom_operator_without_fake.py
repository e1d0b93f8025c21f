"""CAP012."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue import capture_clues as clues
from torchferry.catalogue.rule import Rule
from torchferry.foreign.torch_messages import operator_without_fake_kernel
from torchferry.records import Case, Diagnosis, Job


class CustomOperatorWithoutFake(Rule):
    """A custom operator has a body that torch cannot look into

    ## What happened
    An operator made with `torch.library.custom_op`, or in C++, is a closed box. Capture needs a *fake kernel*, which tells the
    shape of its result, to go past it; and the file needs a translation, as onnxruntime has no such operator.

    ## Do instead
    Register a fake kernel with `@op.register_fake`, and tell torchferry what the operator is in ONNX or in torch:

        @my_op.register_fake
        def _(x):
            return torch.empty_like(x)

        def my_op_in_torch(x):
            return ...          # the same in torch operators
        torchferry.register_op("mylib::my_op", decomposition=my_op_in_torch)

    Or write it in plain torch, without a custom operator.
    """

    code, stage = "CAP012", "capture"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in clues.stopped(case):
            name = operator_without_fake_kernel(finding.said)
            if name is None:
                continue
            short = name.rpartition("::")[2].partition(".")[0]
            yield Diagnosis(
                self.code,
                f"the custom operator `{name}` has no fake kernel, and its Python or C++ body cannot be captured",
                f'register one with `@{short}.register_fake`, and what it computes with `torchferry.register_op("{name}",'
                " decomposition=...)`; or express the operator in torch",
                clues.place(finding),
                (
                    f"@{short}.register_fake",
                    "def _(x): return torch.empty_like(x)",
                    f"def {short}_in_torch(x): ...",
                    f'torchferry.register_op("{name}", decomposition={short}_in_torch)',
                ),
            )


def bad() -> Job:
    """An operator written in numpy."""
    import torch

    @torch.library.custom_op("torchferry_examples::halved", mutates_args=(), schema="(Tensor x) -> Tensor")
    def halved(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 0.5)

    class Halving(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return halved(x) + 1

    return Job(Halving().eval(), (torch.rand(2, 3),))


def good() -> Job:
    """The same in torch."""
    import torch

    class Halving(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 0.5 + 1

    return Job(Halving().eval(), (torch.rand(2, 3),))
