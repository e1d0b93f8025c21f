"""Named transforms of the model's copy before capture, and of the captured program after it; the original stays the oracle.

survey   what in a module no capture can follow, as findings
apply    the module with the edits `prepare:<name>` carried out
revise   the captured program with them carried out, where they act on operators rather than on modules
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from torchferry.capture.prepare import (
    aliases,
    baked,
    dense,
    encoder,
    flex,
    gradients,
    maps,
    precision,
    quantised,
    recurrent,
    script,
)
from torchferry.capture.prepare.survey import survey
from torchferry.capture.prepare.tree import own
from torchferry.records import Edit, Facts

__all__ = ["PREFIX", "apply", "revise", "survey"]

PREFIX = "prepare:"
MODULES: dict[str, Callable[[nn.Module, tuple[Any, ...], Facts], nn.Module]] = {
    "quantised": quantised.prepare,
    "dense": dense.prepare,
    "gradients": gradients.prepare,
    "encoder": encoder.prepare,
    "baked": baked.prepare,
    "script": script.prepare,
}
PROGRAMS: dict[str, Callable[[Any, Facts], Any]] = {"float32-kernels": precision.revise}


def apply(module: nn.Module, args: tuple[Any, ...], edits: Iterable[Edit]) -> nn.Module:
    """Return the module with the named transforms made; the one that is given stays as it is.

    Recurrent layers are always written as the ONNX operators that they are: no other form of them takes any length.
    """
    named = {edit.name.removeprefix(PREFIX): edit.params for edit in edits}
    if not named and not recurrent.is_needed(module):
        return module
    module = own(module)
    if recurrent.is_needed(module):
        module = recurrent.prepare(module)
    for name, params in named.items():
        if name in MODULES:
            module = MODULES[name](module, args, params)
    return module


def revise(program: Any, edits: Iterable[Edit]) -> Any:
    """Return the captured program with the named changes of operators made; signature and guards stay.

    FlexAttention is always written out, as there is nothing else to translate it to, and bodies give back tensors of their own.
    """
    if maps.is_used(program):
        program = maps.revise(program)
    if aliases.is_needed(program):
        program = aliases.revise(program)
    if flex.is_used(program):
        program = flex.revise(program)
    for edit in edits:
        if (change := PROGRAMS.get(edit.name.removeprefix(PREFIX))) is not None:
            program = change(program, edit.params)
    return program
