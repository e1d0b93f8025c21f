"""One reading of the arguments, made ready: the flat module, its tensors and names, and what is fixed in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchferry.errors import UsageError
from torchferry.inputs.binding import trees
from torchferry.inputs.binding.arguments import Reading, leaves
from torchferry.inputs.binding.callee import Callee
from torchferry.inputs.binding.flat import ArgumentSlot, Flat, Recipe, flat_module

NUMBERS = (bool, int, float)  # each can be said in the next
NUMBER_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float32}


@dataclass(frozen=True, slots=True)
class Prepared:
    """The flat module with the example's tensors; `keys` are the leaves' own names, `names` those in the file."""

    flat: Flat
    tensors: tuple[torch.Tensor, ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    fixed: Mapping[str, str]
    from_numpy: tuple[str, ...]
    reading: Reading
    outline: str

    @property
    def numbers(self) -> frozenset[int]:
        """Which inputs are Python numbers for the user."""
        return frozenset(s.index for s in self.flat.recipe.slots if s.index is not None and s.number in NUMBERS)


def prepare(
    callee: Callee, reading: Reading, input_names: Sequence[str] | None, varying: Mapping[str, type] | None = None
) -> Prepared:
    """Return a reading made ready; `varying` names the Python numbers that must be inputs, with the kind of number they are."""
    parts, positional, named = leaves(callee.signature, reading)
    slots: list[ArgumentSlot] = []
    tensors: list[torch.Tensor] = []
    keys: list[str] = []
    for key, value in parts:
        tensor, kind = as_input(value, (varying or {}).get(key))
        if tensor is None:
            slots.append(ArgumentSlot(key, None, value))
        else:
            slots.append(ArgumentSlot(key, len(tensors), None, kind))
            tensors.append(tensor)
            keys.append(key)
    names = file_names(keys, input_names)
    recipe = Recipe(positional, named, tuple(slots))
    fixed = {s.name: shown(s.constant) for s in slots if s.index is None and not _is_default(callee, s)}
    arrays = tuple(k for k, v in parts if isinstance(v, np.ndarray | np.generic))
    return Prepared(
        flat_module(callee, recipe, names),
        tuple(tensors),
        tuple(keys),
        names,
        fixed,
        arrays,
        reading,
        _outline(positional, named),
    )


def as_input(value: Any, number: type | None = None) -> tuple[torch.Tensor | None, type | None]:
    """Return a leaf as the tensor that the file will take, and the Python type it stands for; None if it is a constant.

    `number` is the kind of an input that is a Python number; one that is wider than that keeps its own kind.
    """
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            return torch.view_as_real(value.detach().resolve_conj()), complex
        return value.detach(), None
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.from_numpy(np.ascontiguousarray(value)), np.ndarray
    if number in NUMBERS and isinstance(value, NUMBERS):
        kind = widest(number, type(value))
        return torch.tensor(value, dtype=NUMBER_DTYPES[kind]), kind
    return None, None


def widest(*kinds: type) -> type:
    """Return the kind of number that all of these can be said in: a float where one is, else an int, else a bool."""
    return max((next(n for n in NUMBERS if issubclass(kind, n)) for kind in kinds), key=NUMBERS.index)


def file_names(keys: Sequence[str], given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the inputs in the file: the given ones for the first, their own for the others."""
    given = list(given or ())
    if len(given) > len(keys):
        takes = f"{len(keys)} tensors" if len(keys) != 1 else "one tensor"
        raise UsageError(
            f"input_names has {len(given)} names ({', '.join(given)}), but the model takes {takes}: {', '.join(keys)}"
        )
    if len(set(given)) != len(given):
        raise UsageError(f"input_names holds the same name twice: {', '.join(given)}")
    return tuple(given + trees.unique(list(keys[len(given) :]), given))


def shown(value: Any) -> str:
    """Return an argument as short text."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    plain = isinstance(value, bool | int | float | str | type(None))
    text = repr(value) if plain else f"{type(value).__name__} {str(value)[:40]}"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_default(callee: Callee, slot: ArgumentSlot) -> bool:
    """Whether a constant is what the model would have taken anyway, so that nobody needs to be told."""
    parameter = callee.signature.parameters.get(slot.name)
    return parameter is not None and parameter.default is None and slot.constant is None


def _outline(positional: Sequence[trees.Tree], named: Mapping[str, trees.Tree]) -> str:
    return ", ".join([*map(trees.outline, positional), *(f"{n}={trees.outline(t)}" for n, t in sorted(named.items()))])
