"""What the translate stage notices: operators without a translation, and sizes that translation fixed."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records.finding import Finding


@dataclass(frozen=True, slots=True)
class OperatorWithoutOnnx(Finding):
    """An operator of torch's own has no translation; dtype "" where it is used on no tensor."""

    operator: str
    schema: str
    dtype: str


@dataclass(frozen=True, slots=True)
class ComplexOperator(Finding):
    """An operator on complex numbers has no form for real pairs."""

    operator: str
    dtype: str


@dataclass(frozen=True, slots=True)
class CustomOperator(Finding):
    """An operator of somebody's own has no translation; perhaps its Python body can be traced."""

    operator: str
    schema: str
    has_body: bool


@dataclass(frozen=True, slots=True)
class OperatorRefused(Finding):
    """A translation refused the arguments that a call gives it."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpsetCannotExpress(Finding):
    """An operator cannot be written in the opset that was asked for; `lowest` is one that has them all."""

    operator: str
    opset: int
    lowest: int


@dataclass(frozen=True, slots=True)
class OutputSizeFixed(Finding):
    """A size of an output is an expression in the captured program, and a plain number in the graph."""

    output: str
    axis: int
    says: str
    fixed: int
