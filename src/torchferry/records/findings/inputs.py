"""What the inputs stage notices: in the user's call, in the sizes asked for, in a file that is to take the same call."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.records.finding import Finding


@dataclass(frozen=True, slots=True)
class Shown:
    """A Python value as users are told of it: its type and its text."""

    type: str
    value: str

    def __str__(self) -> str:
        return f"{self.type} {self.value}"


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """One tensor of an example."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: str


@dataclass(frozen=True, slots=True)
class ExampleFailed(Finding):
    """The model raised on its own example; dtype and device are those of its weights, where it has any."""

    inputs: tuple[GivenTensor, ...]
    dtype: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class ProgramNotTrusted(Finding):
    """The model is a file whose reading runs code that is in it, and nobody said that it may."""

    file: str


@dataclass(frozen=True, slots=True)
class MisboundArgument(Finding):
    """A positional argument (counted from 1) went to another parameter than it is meant for; `names` are all, as meant."""

    names: tuple[str, ...]
    position: int
    bound_to: str
    meant: str
    by_names: bool  # the user's own names say so; False: no other reading works


@dataclass(frozen=True, slots=True)
class SwappedArguments(Finding):
    """A mask holds what no mask holds, while another argument looks like one. Positions count from 1."""

    position: int
    parameter: str
    looks_like: str
    other_position: int


@dataclass(frozen=True, slots=True)
class NumpyArrayTaken(Finding):
    """An array was taken as a tensor."""

    input: str


@dataclass(frozen=True, slots=True)
class ArgumentFixed(Finding):
    """A Python argument is what it was in the example, for ever."""

    argument: str
    value: str
    number: bool


@dataclass(frozen=True, slots=True)
class ComplexOutput(Finding):
    """An output is complex."""

    output: str


@dataclass(frozen=True, slots=True)
class OutputLeftOut(Finding):
    """An output is no tensor."""

    output: str
    given: Shown


@dataclass(frozen=True, slots=True)
class NoTensorOutput(Finding):
    """The model gives nothing that a file can give."""

    given: Shown


@dataclass(frozen=True, slots=True)
class NoTensorInput(Finding):
    """The model takes nothing that a file can take; `code` is where it first uses what it takes."""

    argument: str
    given: Shown
    code: str


@dataclass(frozen=True, slots=True)
class ExampleDoesNotFit(Finding):
    """One of the user's further examples, by its number, cannot be fed to the file; argument "" where none is named."""

    example: int
    argument: str
    words: str


@dataclass(frozen=True, slots=True)
class AskedAxisDoesNotMove(Finding):
    """An axis was asked to move, or differs between examples, and the model runs with one size only."""

    input: str
    axis: int
    size: int
    why: str
    from_examples: bool


@dataclass(frozen=True, slots=True)
class RangeBeyondModel(Finding):
    """A range was asked for, from and to, that the model does not take."""

    dim: str
    asked: tuple[int, int | None]
    model: tuple[int, int | None]
    why: str


@dataclass(frozen=True, slots=True)
class SizeGivenUp(Finding):
    """A size is declared in a smaller range than the model takes, because of the diagnosis `code` with the message `why`."""

    dim: str
    axes: tuple[str, ...]
    was: str
    now: str
    fixed: bool
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class FileLacksInput(Finding):
    """A file from elsewhere has no input for an argument."""

    input: str


@dataclass(frozen=True, slots=True)
class FileHasOtherInputs(Finding):
    """A file from elsewhere takes other inputs, by name, than the model."""

    words: str
    file: tuple[str, ...]
    model: tuple[str, ...]
