"""What the first four stages answer: a call, a program, a file, and what that file is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from torchferry.records.faults import Fault, Location
from torchferry.records.signature import Signature, TensorSpec

if TYPE_CHECKING:
    import onnx_ir
    import torch
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Bound:
    """Stage 1's answer: the model as a plain function of tensors, one example, and what the file will take.

    `module` is an nn.Module whose forward takes the tensors of `signature.inputs` in that order, by position, rebuilds
    the user's containers from them, calls the user's model, and returns a flat tuple of tensors, named `outputs`.
    Every later stage sees only this flat form.
    `vary(sizes, values, seed)` makes the tensors of another call: `sizes` maps dim names to numbers (dims left out keep
    the example's), `values` names a way to fill them; it raises ValueError where no such call can be made.
    `feeds(args, kwargs)` flattens the *user's* arguments into {input name: array}, and refuses in words what the file fixed.
    """

    module: torch.nn.Module
    args: tuple[torch.Tensor, ...]
    signature: Signature
    outputs: tuple[str, ...]
    dynamic_shapes: Any  # for torch.export: a tuple as long as args, each None or {axis: Dim}
    vary: Callable[..., tuple[torch.Tensor, ...]]
    feeds: Callable[..., dict[str, NDArray[Any]]]
    examples: tuple[tuple[torch.Tensor, ...], ...] = ()  # the user's further examples, flattened like the first
    prefix: str = "model."  # where the user's module sits inside `module`: to be taken off names that users see
    roles: Mapping[str, str] = field(default_factory=dict)  # input name -> what it is for; see inputs/values/roles.py
    searched: frozenset[int] = frozenset()  # places of inputs that are searched by halving: sorted along their last axis

    @property
    def example_sizes(self) -> dict[str, int]:
        """The sizes that the example has."""
        return {name: int(self.args[number].shape[axis]) for name, (number, axis) in self.signature.places.items()}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One strategy tried on the way to a result, and what stopped it (None: nothing did)."""

    strategy: str
    fault: Fault | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on sizes under which the capture is valid, in the user's dim names, and the line that made it."""

    text: str  # "sequence_length > 10", as sympy can parse it
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """Stage 2's answer: a program, the conditions it relies on, and how it was got."""

    program: torch.export.ExportedProgram
    strategy: str
    attempts: tuple[Attempt, ...] = ()
    guards: tuple[Guard, ...] = ()


class SessionWords(TypedDict, total=False):
    """Options of a session, by the names that the door to onnxruntime has for them."""

    level: Literal["all", "extended", "basic", "none"]  # of onnxruntime's optimiser
    disabled: list[str]  # optimisers, by name
    libraries: list[str]  # of operators of custom domains


@dataclass(frozen=True, slots=True)
class Translated:
    """Stage 3's answer: a file in the workspace, and the map from its names back to the user's source."""

    path: Path
    opset: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    provenance: Mapping[str, Location] = field(default_factory=dict)  # node name and value name -> place in the source
    model: onnx_ir.Model | None = None  # while it is in memory
    settings: SessionWords = field(default_factory=SessionWords)  # what a session must set for the file to be right


@dataclass(frozen=True, slots=True)
class Checked:
    """Stage 4's answer: what the file turned out to be."""

    opset: int
    ir_version: int
    bytes: int
    runtime: str  # "onnxruntime 1.31.1"
    path: Path | None = None  # for a file from elsewhere: the one to use, mended in the workspace or as it was
    reached: int = 0  # for a file from elsewhere: 0 it was read, 1 it opens, 2 it runs on every feed
