"""Edits of the capture stage: lines rewritten, captures joined, and parts that no capture can follow put in another form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchferry.records import Edit
from torchferry.records.sites import Site


@dataclass(frozen=True, slots=True)
class Rewrite(Edit):
    """Rewrite lines of the user's functions, in memory and for the capture only."""

    stage, name = "capture", "rewrite"
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Piecewise(Edit):
    """Capture the model on both sides of a condition on its sizes, and join the two."""

    stage, name = "capture", "piecewise"
    guard: str


@dataclass(frozen=True, slots=True)
class Prepare(Edit):
    """A transform of the model's copy before it is captured, or of the program after that; the original stays the oracle."""

    stage = "capture"


@dataclass(frozen=True, slots=True)
class PrepareQuantised(Prepare):
    """Compute quantised parts on floats; fake quantisers as the two nodes that ONNX has for them, or in plain arithmetic."""

    name = "prepare:quantised"
    form: Literal["nodes", "arithmetic"] = "nodes"


@dataclass(frozen=True, slots=True)
class PrepareDense(Prepare):
    """Write sparse tensors out as dense ones."""

    name = "prepare:dense"


@dataclass(frozen=True, slots=True)
class PrepareGradients(Prepare):
    """Trace forward and the backward pass inside it into one graph."""

    name = "prepare:gradients"


@dataclass(frozen=True, slots=True)
class PrepareEncoder(Prepare):
    """Give zeros at padded positions, as the fast path of torch's encoder does."""

    name = "prepare:encoder"


@dataclass(frozen=True, slots=True)
class PrepareBaked(Prepare):
    """Compute parametrised weights once."""

    name = "prepare:baked"


@dataclass(frozen=True, slots=True)
class PrepareScript(Prepare):
    """Run compiled parts node by node."""

    name = "prepare:script"


@dataclass(frozen=True, slots=True)
class PrepareFloat32Kernels(Prepare):
    """Compute in float32 what is of a dtype for which runtimes lack kernels; `all`: where there is one, too."""

    name = "prepare:float32-kernels"
    dtype: Literal["bfloat16", "float64"]
    all: bool = False
