"""Edits of the translate stage: how the graph is made, what is changed in it, and what a session must set for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchferry.records import Edit


@dataclass(frozen=True, slots=True)
class TranslateEdit(Edit):
    """What the translation does otherwise than it would."""

    stage = "translate"


@dataclass(frozen=True, slots=True)
class InlineCustomOperator(TranslateEdit):
    """Trace the Python body of a custom operator into the graph."""

    name = "inline-custom-operator"
    operator: str


@dataclass(frozen=True, slots=True)
class OptimiserOff(TranslateEdit):
    """Leave the exporter's optimiser off."""

    name = "optimiser-off"


@dataclass(frozen=True, slots=True)
class SessionOptions(TranslateEdit):
    """Have every session of the file set these options, which go by the names that `ort.session` has for them."""

    name = "session"
    disabled: tuple[str, ...] = ()
    level: Literal["all", "extended", "basic", "none"] | None = None


@dataclass(frozen=True, slots=True)
class GuardPadBeforeMaxpool(TranslateEdit):
    """Keep onnxruntime from taking a Pad into the MaxPool behind it."""

    name = "guard-pad-before-maxpool"


@dataclass(frozen=True, slots=True)
class PropagateNan(TranslateEdit):
    """Pass NaN on in maxima and minima, as torch does."""

    name = "propagate-nan"


@dataclass(frozen=True, slots=True)
class LastLogits(TranslateEdit):
    """Let the caller say for how many of the last tokens logits are computed."""

    name = "last-logits"


@dataclass(frozen=True, slots=True)
class NoWholeSlices(TranslateEdit):
    """Drop slices that take all there is."""

    name = "no-whole-slices"


@dataclass(frozen=True, slots=True)
class WholeAttention(TranslateEdit):
    """Write attention as the one operator that ONNX has for it from opset 23."""

    name = "whole-attention"


@dataclass(frozen=True, slots=True)
class WholeNorms(TranslateEdit):
    """Write root-mean-square norms as the one operator that ONNX has for them from opset 23."""

    name = "whole-norms"


@dataclass(frozen=True, slots=True)
class WholeProducts(TranslateEdit):
    """Multiply whole batches, without the reshapes that flatten their rows for a product."""

    name = "whole-products"


@dataclass(frozen=True, slots=True)
class WholeRotations(TranslateEdit):
    """Write rotary embeddings as the one operator that ONNX has for them from opset 23."""

    name = "whole-rotations"
