"""The user's further examples: flattened like the first; which numbers and sizes vary; what the file cannot take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torchferry import eager
from torchferry.errors import FeedError
from torchferry.inputs.binding.feeds import WIDER, Feeder, dtype_name
from torchferry.inputs.binding.reading import NUMBERS, as_input, widest
from torchferry.inputs.sizes.probing import Axis, Shapes, observe
from torchferry.records import Call, Location
from torchferry.records.findings import ExampleDoesNotFit


def varying_numbers(feeder: Feeder, examples: Sequence[Call]) -> dict[str, type]:
    """Return the Python numbers that are not the same in all examples, each with the kind of number that says them all."""
    found: dict[str, type] = {}
    slots = [s for s in feeder.prepared.flat.recipe.slots if s.index is None and isinstance(s.constant, NUMBERS)]
    for args, kwargs in examples:
        given = feeder.leaves(args, kwargs)
        for slot in slots:
            value = given.get(slot.name)
            if isinstance(value, NUMBERS) and value != slot.constant:
                found[slot.name] = widest(found.get(slot.name, bool), type(value), type(slot.constant))
    return found


def differing_axes(feeder: Feeder, examples: Sequence[Call]) -> frozenset[Axis]:
    """Return the axes whose sizes are not the same in all examples."""
    ours = feeder.prepared.tensors
    return frozenset((i, a) for i, shape in _shapes(feeder, examples) for a, n in enumerate(shape) if n != ours[i].shape[a])


def empty_axes(feeder: Feeder, examples: Sequence[Call]) -> frozenset[Axis]:
    """Return the axes that hold nothing in some example, the first included."""
    shapes = [*((i, tuple(t.shape)) for i, t in enumerate(feeder.prepared.tensors)), *_shapes(feeder, examples)]
    return frozenset((i, a) for i, shape in shapes for a, n in enumerate(shape) if n == 0)


def _shapes(feeder: Feeder, examples: Sequence[Call]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the sizes of each input of each further example that has as many axes as the first."""
    for args, kwargs in examples:
        given = feeder.leaves(args, kwargs)
        for slot in feeder.prepared.flat.recipe.slots:
            if slot.index is None:
                continue
            tensor, _ = as_input(given.get(slot.name), slot.number)
            if tensor is not None and tensor.dim() == feeder.prepared.tensors[slot.index].dim():
                yield slot.index, tuple(tensor.shape)


def taken(feeder: Feeder, examples: Sequence[Call]) -> Iterator[Shapes]:
    """Yield the sizes of the examples that the model takes."""
    for args, kwargs in examples:
        tensors = tuple(t for t in _as_given(feeder, args, kwargs) if t is not None)
        try:
            observe(eager.fresh(feeder.prepared.flat), tensors)
        except Exception:  # the example is the user's to mend; what is said of its sizes tells which one
            continue
        yield tuple(tuple(t.shape) for t in tensors)


def misfits(feeder: Feeder, examples: Sequence[Call], *, sizes: bool = False) -> tuple[ExampleDoesNotFit, ...]:
    """Return a finding for each example that the file cannot take: for all but its sizes, or, with `sizes`, for these alone."""
    found = []
    for number, (args, kwargs) in enumerate(examples, start=2):  # the first is the example itself
        try:
            made = feeder.tensors(args, kwargs)
            if sizes:
                feeder.check(made)
        except FeedError as error:
            found.append(_refused(feeder, number, str(error)))
            continue
        if not sizes and _narrower(feeder, args, kwargs) and not _same_answer(feeder, made, args, kwargs):
            found.append(_refused(feeder, number, "the model answers otherwise when it is widened"))
    return tuple(found)


def _refused(feeder: Feeder, number: int, words: str) -> ExampleDoesNotFit:
    named = [s.name for s in feeder.prepared.flat.recipe.slots if f"`{s.name}" in words]
    argument = named[0] if named else words.split("`")[1].split("=", maxsplit=1)[0] if "`" in words else ""
    return ExampleDoesNotFit(number, argument, words, location=Location(input_name=argument or None))


def _narrower(feeder: Feeder, args: Any, kwargs: Any) -> bool:
    given, specs = feeder.leaves(args, kwargs), feeder.signature.inputs
    return any(
        isinstance(t := given.get(s.name), torch.Tensor) and dtype_name(t.dtype) in WIDER.get(specs[s.index].dtype, ())
        for s in feeder.prepared.flat.recipe.slots
        if s.index is not None
    )


def _same_answer(feeder: Feeder, widened: tuple[torch.Tensor, ...], args: Any, kwargs: Any) -> bool:
    """Whether the model answers the same to the arguments as they are and to the wider ones that the file takes."""
    module = eager.fresh(feeder.prepared.flat)
    original = tuple(t for t in _as_given(feeder, args, kwargs) if t is not None)
    try:
        ours, theirs = observe(module, widened).outputs, observe(module, original).outputs
    except Exception:  # then the example is the user's to mend; verification shows the line
        return True
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(_equal(a, b) for (_, a), (_, b) in pairs)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    return type(a) is type(b)


def _as_given(feeder: Feeder, args: Any, kwargs: Any) -> list[torch.Tensor | None]:
    given = feeder.leaves(args, kwargs)
    slots = [s for s in feeder.prepared.flat.recipe.slots if s.index is not None]
    return [as_input(given.get(s.name), s.number)[0] for s in slots]
