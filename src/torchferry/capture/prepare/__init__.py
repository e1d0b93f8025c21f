"""Named transforms of the model's copy before capture, and of the captured program after it; the original stays the oracle.

survey   what in a module no capture can follow, as findings
apply    the module with `Prepare` edits carried out
revise   the captured program with them carried out, where they act on operators rather than on modules
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn

from torchferry.capture.prepare import baked, gradients, precision, quantised, script
from torchferry.capture.prepare.survey import survey
from torchferry.capture.prepare.tree import own
from torchferry.edits.capture import (
    Prepare,
    PrepareBaked,
    PrepareDense,
    PrepareEncoder,
    PrepareFloat32Kernels,
    PrepareGradients,
    PrepareQuantised,
    PrepareScript,
)
from torchferry.ops.prepared import aliases, dense, encoder, flex, maps, recurrent

__all__ = ["apply", "revise", "survey"]


def apply(module: nn.Module, args: tuple[Any, ...], edits: Iterable[Prepare]) -> nn.Module:
    """Return the module with the transforms made, each once and as it was asked for last; the one that is given stays as it is.

    Recurrent layers are always written as the ONNX operators that they are: no other form of them takes any length.
    """
    latest = {type(edit): edit for edit in edits}
    if not latest and not recurrent.is_needed(module):
        return module
    module = own(module)
    if recurrent.is_needed(module):
        module = recurrent.prepare(module)
    for edit in latest.values():
        module = _prepared(module, args, edit)
    return module


def _prepared(module: nn.Module, args: tuple[Any, ...], edit: Prepare) -> nn.Module:
    match edit:
        case PrepareQuantised():
            return quantised.prepare(module, nodes=edit.form == "nodes")
        case PrepareDense():
            return dense.prepare(module)
        case PrepareGradients():
            return gradients.prepare(module, args)
        case PrepareEncoder():
            return encoder.prepare(module)
        case PrepareBaked():
            return baked.prepare(module)
        case PrepareScript():
            return script.prepare(module)
    return module  # it acts on the program


def revise(program: Any, edits: Iterable[Prepare]) -> Any:
    """Return the captured program with changes of operators made; signature and guards stay.

    FlexAttention is always written out, as there is nothing else to translate it to, and bodies give back tensors of their own.
    """
    if maps.is_used(program):
        program = maps.revise(program)
    if aliases.is_needed(program):
        program = aliases.revise(program)
    if flex.is_used(program):
        program = flex.revise(program)
    for edit in edits:
        if isinstance(edit, PrepareFloat32Kernels):
            program = precision.revise(program, edit)
    return program
