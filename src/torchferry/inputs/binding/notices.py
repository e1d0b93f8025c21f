"""What is worth telling about a call that works: arrays taken as tensors, arguments fixed, outputs left out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.inputs.binding.callee import Callee
from torchferry.inputs.binding.flat import is_output
from torchferry.inputs.binding.reading import Prepared, shown
from torchferry.inputs.sizes.probing import Observed
from torchferry.records import Finding, Location
from torchferry.records.findings import (
    ArgumentFixed,
    ComplexOutput,
    ExampleFailed,
    GivenTensor,
    NoTensorInput,
    NoTensorOutput,
    NumpyArrayTaken,
    OutputLeftOut,
    Shown,
)


def notices(callee: Callee, prepared: Prepared, observed: Observed) -> Iterator[Finding]:
    """Yield a finding for each thing that the user should know about the example."""
    for name in prepared.from_numpy:
        yield NumpyArrayTaken(name, location=Location(input_name=name))
    if not prepared.tensors and any(slot.constant is not None for slot in prepared.flat.recipe.slots):
        yield _nothing_to_feed(callee, prepared)
        return
    for slot in prepared.flat.recipe.slots:
        if slot.index is None and isinstance(slot.constant, bool | int | float | str):
            number = not isinstance(slot.constant, str)
            yield ArgumentFixed(slot.name, shown(slot.constant), number, location=Location(input_name=slot.name))
    for name, leaf in observed.outputs:
        if isinstance(leaf, torch.Tensor) and leaf.is_complex():
            yield ComplexOutput(name, location=Location(op=name))
        elif not is_output(leaf) and (isinstance(leaf, str | bytes) or "." not in name):
            yield OutputLeftOut(name, _shown(leaf), location=Location(op=name))


def _shown(value: Any) -> Shown:
    return Shown(type(value).__name__, shown(value))


def nothing_to_give(callee: Callee, observed: Observed) -> NoTensorOutput | None:
    """Return that a model answers with nothing that a file can give, or None if it does give something."""
    if any(is_output(leaf) for _, leaf in observed.outputs):
        return None
    leaf = next((leaf for _, leaf in observed.outputs), None)
    file, line, _ = first_use(callee, "return")
    return NoTensorOutput(_shown(leaf), location=Location(file, line))


def failed_example(callee: Callee, prepared: Prepared) -> ExampleFailed:
    """Return what an example was like that the model raised on."""
    inputs = tuple(
        GivenTensor(n, str(t.dtype).removeprefix("torch."), tuple(t.shape), t.device.type)
        for n, t in zip(prepared.keys, prepared.tensors, strict=True)
    )
    module = callee.module
    weights = (
        next((p for p in [*module.parameters(), *module.buffers()] if p.is_floating_point()), None)
        if module is not None
        else None
    )
    home = (str(weights.dtype).removeprefix("torch."), weights.device.type) if weights is not None else (None, None)
    return ExampleFailed(inputs, *home, location=Location())


def _nothing_to_feed(callee: Callee, prepared: Prepared) -> NoTensorInput:
    slot = next(s for s in prepared.flat.recipe.slots if s.constant is not None)
    argument = slot.name.split(".")[0]
    file, line, code = first_use(callee, argument)
    return NoTensorInput(argument, _shown(slot.constant), code, location=Location(file, line, input_name=argument))


def first_use(callee: Callee, argument: str) -> tuple[str | None, int | None, str]:
    """Return the file, line and code where the model first uses an argument, as far as its source is known."""
    function: Any = getattr(callee.module, callee.method) if callee.module is not None else callee.function
    try:
        function = inspect.unwrap(function)
        lines, start = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function)
    except (TypeError, OSError):  # no source: a builtin, a script module, a notebook cell that is gone
        return None, None, ""
    body = next((k + 1 for k, line in enumerate(lines) if line.rstrip().endswith(":")), 1)
    for offset, line in enumerate(lines[body:], start=body):
        if argument in line:
            return file, start + offset, line.strip()
    return file, start, lines[0].strip()
