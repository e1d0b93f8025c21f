"""A file from elsewhere beside the model: which of its inputs is which argument, and what it declares about their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from torchferry.inputs.binding.asked import Asked, expression, solvable
from torchferry.inputs.binding.callee import Callee
from torchferry.inputs.binding.feeds import WIDER, dtype_name
from torchferry.inputs.binding.flat import identifiers
from torchferry.inputs.binding.reading import Prepared, prepare
from torchferry.inputs.sizes.discover import Ask
from torchferry.inputs.sizes.probing import Axis
from torchferry.records import Location, Size
from torchferry.records.findings import FileHasOtherInputs, FileLacksInput


@dataclass(frozen=True, slots=True)
class Declared:
    """An input or output that a file declares; sizes are numbers, symbols, or None where it says nothing."""

    name: str
    dtype: str
    shape: tuple[Size | None, ...] | None


@dataclass(frozen=True, slots=True)
class Match:
    """The example bound to a file: named and ordered as it is there, with what it asks of sizes; or why it cannot be."""

    prepared: Prepared
    asked: Asked
    outputs: tuple[str, ...]
    lacking: tuple[FileLacksInput, ...] = ()
    other: tuple[FileHasOtherInputs, ...] = ()  # why it cannot be


def read(path: Path) -> tuple[list[Declared], list[Declared]]:
    """Return the inputs that a file must be fed, and its outputs."""
    graph = onnx.load(path, load_external_data=False).graph
    known = {i.name for i in graph.initializer} | {i.values.name for i in graph.sparse_initializer}
    return [_declared(v) for v in graph.input if v.name not in known], [_declared(v) for v in graph.output]


def match(path: Path, callee: Callee, prepared: Prepared) -> Match:
    """Return the example as the file takes it."""
    inputs, outputs = read(path)
    names = tuple(o.name for o in outputs)
    numbers = {s.name for s in prepared.flat.recipe.slots if s.index is None and isinstance(s.constant, bool | int | float)}
    if wanted := numbers & {i.name for i in inputs}:
        prepared = prepare(callee, prepared.reading, None, dict.fromkeys(wanted, bool))
    pairs = _pairs(inputs, prepared.keys)
    other = [
        _other_inputs(f"the file wants `{d.name}`, which the model has no argument for", inputs, prepared)
        for d in inputs
        if d.name not in pairs
    ]
    for declared in inputs:
        if declared.name in pairs and (words := _unlike(declared, prepared, pairs[declared.name])):
            other.append(_other_inputs(words, inputs, prepared))
    if other:
        return Match(prepared, Asked({}), names, other=tuple(other))
    called = {i: name for name, i in pairs.items()}
    lacking = [key for i, key in enumerate(prepared.keys) if i not in called]
    named = replace(prepared, names=tuple(called.get(i, key) for i, key in enumerate(prepared.keys)))
    told = tuple(FileLacksInput(key, location=Location(input_name=key)) for key in lacking)
    return Match(named, Asked(_asks(inputs, pairs, prepared, lacking)), names, told)


def output_names(own: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the file's names in the model's order: those that the model has too at the model's own places."""
    if len(own) != len(given):
        return tuple(own)
    shared = set(own) & set(given)
    rest = iter(n for n in given if n not in shared)
    return tuple(n if n in shared else next(rest) for n in own)


def _declared(value: Any) -> Declared:
    tensor = value.type.tensor_type
    if not tensor.elem_type:
        return Declared(value.name, value.type.WhichOneof("value") or "nothing", None)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    shape = (
        tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
        if tensor.HasField("shape")
        else None
    )
    return Declared(value.name, np.dtype(dtype).name, shape)


def _pairs(inputs: Sequence[Declared], keys: Sequence[str]) -> dict[str, int]:
    """Return {input of the file: argument}, by name, by name as Python spells it, and the rest in order."""
    pairs: dict[str, int] = {}
    spelt = identifiers(keys)
    for declared in inputs:
        for names in (list(keys), spelt, [k.replace(".", "_") for k in keys]):
            if declared.name in names and names.index(declared.name) not in pairs.values():
                pairs[declared.name] = names.index(declared.name)
                break
    free = [i for i in range(len(keys)) if i not in pairs.values()]
    unnamed = [d for d in inputs if d.name not in pairs]
    if len(unnamed) == len(free) or not pairs:  # none left over, or none known by name: the order is all there is
        pairs |= {d.name: i for d, i in zip(unnamed, free, strict=False)}
    return pairs


def _unlike(declared: Declared, prepared: Prepared, index: int) -> str:
    """Return in words how an input differs from the argument that it is fed from, or nothing."""
    tensor = prepared.tensors[index]
    got = dtype_name(tensor.dtype)
    if declared.dtype != got and got not in WIDER.get(declared.dtype, ()):
        return f"the file's `{declared.name}` is {declared.dtype}, the example's `{prepared.keys[index]}` is {got}"
    if declared.shape is None:
        return ""
    if len(declared.shape) != tensor.dim():
        ours = f"the example's `{prepared.keys[index]}` has {tensor.dim()}"
        return f"the file's `{declared.name}` has {len(declared.shape)} axes, {ours}"
    for axis, (size, number) in enumerate(zip(declared.shape, tensor.shape, strict=True)):
        if isinstance(size, int) and size != number:
            return f"the file's `{declared.name}` has {size} at axis {axis}, the example has {number}"
    return ""


def _asks(inputs: Sequence[Declared], pairs: dict[str, int], prepared: Prepared, lacking: Sequence[str]) -> dict[Axis, Ask]:
    """Return which axes the file lets move, by its own symbols where these agree with the example."""
    found: dict[Axis, Ask] = {}
    sizes: dict[str, set[int]] = {}
    for declared in inputs:
        i = pairs[declared.name]
        shape = declared.shape if declared.shape is not None else (None,) * prepared.tensors[i].dim()
        for axis, size in enumerate(shape):
            if not isinstance(size, int):
                found[i, axis] = Ask(expression(size) if size else None)
                sizes.setdefault(str(size), set()).add(prepared.tensors[i].shape[axis])
    doubtful = {expression(name) for name, numbers in sizes.items() if len(numbers) > 1 and name != "None"}
    return solvable({axis: Ask() if ask.name in doubtful else ask for axis, ask in found.items()})


def _other_inputs(words: str, inputs: Sequence[Declared], prepared: Prepared) -> FileHasOtherInputs:
    return FileHasOtherInputs(words, tuple(d.name for d in inputs), tuple(prepared.keys), location=Location())
