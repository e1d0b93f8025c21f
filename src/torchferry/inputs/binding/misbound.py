"""Arguments that went to the wrong parameter: recognised from names, values and how the model behaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

import torch

from torchferry import eager
from torchferry.inputs.binding.arguments import Reading, by_name, parameter_names, positional_names
from torchferry.inputs.binding.callee import Callee
from torchferry.inputs.binding.reading import Prepared, prepare
from torchferry.inputs.sizes.probing import observe
from torchferry.records import Location
from torchferry.records.findings import MisboundArgument, SwappedArguments

MOST_READINGS = 12


def other_readings(callee: Callee, reading: Reading, input_names: Sequence[str] | None) -> Iterator[MisboundArgument]:
    """Yield the one other reading of a call that fails as it stands: by the names given, or by what the values look like."""
    positional = positional_names(callee.signature, len(reading.args))
    named = _given_names(callee.signature, reading, input_names)
    working = [named] if named and _runs(callee, reading, named) else []
    if not working:
        guesses = list(_guesses(callee.signature, reading, positional))[:MOST_READINGS]
        working = [names for names in guesses if _runs(callee, reading, names, must_matter=True)]
    if len(working) == 1:
        names = working[0]
        yield _misbound(positional, names, by_names=bool(named))


def contradicting_names(callee: Callee, reading: Reading, input_names: Sequence[str] | None) -> Iterator[MisboundArgument]:
    """Yield a finding when `input_names` name other parameters than those that the positional arguments went to."""
    names = _given_names(callee.signature, reading, input_names)
    if names and _runs(callee, reading, names):
        yield _misbound(positional_names(callee.signature, len(reading.args)), names, by_names=True)


def _misbound(positional: list[str], names: list[str], *, by_names: bool) -> MisboundArgument:
    at = _first_other(positional, names)
    return MisboundArgument(
        tuple(names), at + 1, positional[at], names[at], by_names=by_names, location=Location(input_name=names[at])
    )


def _first_other(positional: list[str], names: list[str]) -> int:
    return next(i for i, (a, b) in enumerate(zip(positional, names, strict=False)) if a != b)


def swapped(prepared: Prepared, signature: inspect.Signature) -> Iterator[SwappedArguments]:
    """Yield a finding when a mask hides everything while another argument looks like the mask: they changed places."""
    positional = positional_names(signature, len(prepared.reading.args))
    values = dict(zip(prepared.keys, prepared.tensors, strict=True))
    for at, name in enumerate(positional):
        mask = values.get(name)
        if mask is None or "mask" not in name or mask.dtype == torch.bool or mask.is_floating_point() or not mask.numel():
            continue
        others = [
            n
            for n in positional
            if n != name and n in values and values[n].shape == mask.shape and not values[n].is_floating_point()
        ]
        looks = next((n for n in others if _ones_and_zeros(values[n]) and bool(values[n].any())), None)
        if looks is not None and (not bool(mask.any()) or int(mask.max()) > 1):
            yield SwappedArguments(at + 1, name, looks, positional.index(looks) + 1, location=Location(input_name=name))


def _given_names(signature: inspect.Signature, reading: Reading, input_names: Sequence[str] | None) -> list[str]:
    """Return the given names if they are parameters, and others than the positional arguments went to."""
    names = list(input_names or ())[: len(reading.args)]
    if len(names) < len(reading.args) or not set(names) <= set(parameter_names(signature)):
        return []
    return names if names != positional_names(signature, len(names)) else []


def _guesses(signature: inspect.Signature, reading: Reading, positional: list[str]) -> Iterator[list[str]]:
    """Yield other names for one positional argument, fitting what its values look like."""
    free = [n for n in parameter_names(signature) if n not in positional and n not in reading.kwargs]
    for at in range(1, len(reading.args)):
        value = reading.args[at]
        if not isinstance(value, torch.Tensor):
            continue
        wanted = _likely(value)
        for name in free:
            if wanted(name):
                yield [*positional[:at], name, *positional[at + 1 :]]


def _likely(value: torch.Tensor) -> Callable[[str], bool]:
    if value.dtype == torch.bool or (_ones_and_zeros(value) and bool(value.any())):
        return lambda name: "mask" in name
    if value.is_floating_point():
        return lambda name: "embeds" in name or "values" in name or "features" in name
    return lambda name: name.endswith("ids")


def _ones_and_zeros(value: torch.Tensor) -> bool:
    return bool(((value == 0) | (value == 1)).all())


def _runs(callee: Callee, reading: Reading, names: list[str], *, must_matter: bool = False) -> bool:
    """Whether the model takes the arguments by these names, and (if asked) looks at the one that moved."""
    moved = by_name(callee.signature, reading, names)
    if moved is None:
        return False
    at = _first_other(positional_names(callee.signature, len(reading.args)), names)
    prepared = prepare(callee, moved, None)
    module = eager.fresh(prepared.flat)
    try:
        first = observe(module, prepared.tensors).outputs
        if not must_matter:
            return True
        turned = [_turned(t) if k == names[at] else t for k, t in zip(prepared.keys, prepared.tensors, strict=True)]
        second = observe(module, turned).outputs
    except Exception:  # the model refuses this reading, as it refused the first
        return False
    return any(isinstance(a, torch.Tensor) and not torch.equal(a, b) for (_, a), (_, b) in zip(first, second, strict=False))


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    """Return other values of the same kind, to see whether anybody looks at them."""
    if _ones_and_zeros(tensor):
        turned = tensor.clone()
        turned[..., : (tensor.shape[-1] + 1) // 2] = 0 if bool(tensor.any()) else 1
        return turned.to(tensor.dtype)
    return tensor.flip(-1) if tensor.dim() else tensor + 1
