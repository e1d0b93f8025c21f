"""Every weight, buffer and constant of the file, found among the model's own numbers: equal byte for byte, or computed of them.

Looked for in this order, what is cheap first: under its own name; by the sum of its bits, which no transposition changes; among
the values that eager computes of its weights alone; as rows of other tensors; with a batch normalisation multiplied in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from torchferry import eager
from torchferry.verify.arrays import Array, array, is_float
from torchferry.verify.coverage import eager_constants, folds
from torchferry.verify.coverage.equality import close_but_for_order, fingerprint, same_but_for_order, total, uniform
from torchferry.verify.coverage.pieces import Pieces
from torchferry.verify.coverage.recipes import Computed, Recipe, Whole
from torchferry.verify.coverage.stored import Stored, stored
from torchferry.verify.run.both_sides import BothSides

HANDFUL = 4  # numbers with fractions: an epsilon, a scale, the mean of each colour; more is a weight
STRUCTURE = 16  # whole numbers: sizes, axes and paddings; more is a table


@dataclass(frozen=True, slots=True)
class FoundWeight:
    """A tensor of the file, and what of the model it is."""

    stored: Stored
    recipe: Recipe
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Weights:
    """The file's tensors that count as weights: those found in the model, and those that are not."""

    found: tuple[FoundWeight, ...] = ()
    missing: tuple[Stored, ...] = ()
    few: tuple[
        FoundWeight, ...
    ] = ()  # found ones of so few numbers that they do not count: a bias of two, the exponential of a scale
    loose: tuple[Stored, ...] = ()  # of so few numbers, and not found
    tensors: Mapping[str, Array] = field(default_factory=dict, repr=False)  # the model's
    names: Mapping[str, str] = field(default_factory=dict)  # of the file's tensors that have a name of the model's
    seen: eager_constants.Seen = field(default_factory=eager_constants.Seen, repr=False)

    @property
    def unfound(self) -> list[str]:
        """The model's weights that go into its outputs, and that nothing in the file was found to be."""
        there = frozenset[str]().union(*(f.recipe.origin for f in self.found))
        left = [n for n in self.tensors if n in self.seen.alive and n not in there and n not in self.seen.written]
        twins = {fingerprint(self.tensors[n]) for n in there if n in self.tensors}  # a file keeps equal ones once
        return [n for n in left if fingerprint(self.tensors[n]) not in twins]


def weights(sides: BothSides) -> Weights:
    """Return where each of the file's weights comes from."""
    bound = sides.bound
    kept = stored(sides.model, Path(sides.file.path).parent)
    tensors = _arrays(bound.module, bound.prefix)
    used = [s for s in kept if s.takers]
    names = {s.name: n for s in used if (n := _named(s.name, tensors)) is not None}
    counted = {s.name for s in used if s.name in names or _tells(s)}
    work = _by_name_and_bits(Weights(tensors=tensors, names=names), [s for s in used if s.name in counted or s.is_float])
    work = _as_computed(work, sides)
    work = _as_rows(work)
    work = _as_folds(work, bound.module, bound.prefix)
    return replace(
        work,
        found=tuple(f for f in work.found if f.stored.name in counted),
        missing=tuple(s for s in work.missing if s.name in counted),
        few=tuple(f for f in work.found if f.stored.name not in counted),
        loose=tuple(s for s in work.missing if s.name not in counted and _several(s)),
    )


def _several(one: Stored) -> bool:
    return 1 < one.size <= HANDFUL and not uniform(one.values())


def _tells(one: Stored) -> bool:
    """Return whether a tensor without a name of the model's has more to tell than one number over and over."""
    if one.size <= (HANDFUL if one.is_float else STRUCTURE):
        return False
    return not uniform(one.values())


def _arrays(module: torch.nn.Module, prefix: str) -> dict[str, Array]:
    """Return the model's tensors as arrays that share their memory."""
    found = {}
    for name, tensor in eager_constants.held(module, prefix).items():
        if tensor.numel() and not tensor.is_quantized and not tensor.is_complex():
            found[name] = array(tensor)
    return found


def _named(name: str, tensors: Mapping[str, Array]) -> str | None:
    """Return the model's tensor of that name; exporters put words such as `model.` before it."""
    while name and name not in tensors:
        name = name.partition(".")[2]
    return name or None


def _comparable(one: Stored, two: Array) -> bool:
    return one.size == two.size and one.is_float == is_float(two) and (one.dtype.kind == "b") == (two.dtype.kind == "b")


def _by_name_and_bits(work: Weights, counted: Sequence[Stored]) -> Weights:
    found, missing = [], []
    bits = _Bits(work.tensors)
    for one in counted:
        values, own = one.values(), work.names.get(one.name)
        candidates = [own] if own is not None and _comparable(one, work.tensors[own]) else []
        match = _whole(one, values, candidates, work.tensors)
        if match is None and (one.size > HANDFUL or _several(one)):  # a lone number may be anybody's
            match = _whole(one, values, bits.of(one, values), work.tensors)
        if match is not None:
            found.append(match)
        else:
            missing.append(one)
    return replace(work, found=tuple(found), missing=tuple(missing))


class _Bits:
    """The model's tensors by the sum of their bits, in the dtype of who asks."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = tensors
        self._sums: dict[tuple[int, str], dict[int, list[str]]] = {}

    def of(self, one: Stored, values: Array) -> list[str]:
        key = (one.size, one.dtype.str)
        if key not in self._sums:
            self._sums[key] = defaultdict(list)
            for name, tensor in self._tensors.items():
                if _comparable(one, tensor):
                    self._sums[key][total(tensor.astype(one.dtype, copy=False))].append(name)
        return self._sums[key].get(total(values), []) if self._sums[key] else []


def _whole(one: Stored, values: Array, candidates: Sequence[str], tensors: Mapping[str, Array]) -> FoundWeight | None:
    for name in candidates:
        if (order := same_but_for_order(values, tensors[name])) is not None:
            return FoundWeight(one, Whole(name, order, one.shape, one.dtype))
    return None


def _as_computed(work: Weights, sides: BothSides) -> Weights:
    """Return what is left looked for among the values of one eager call, as they come: none of them is kept."""
    values = {s.name: s.values() for s in work.missing}
    found: dict[str, FoundWeight] = {}

    def listen(place: int, op: str, result: torch.Tensor, origin: frozenset[str]) -> None:
        if result.is_quantized or result.is_complex():
            return
        alike = [s for s in work.missing if s.name not in found and s.size == result.numel()]
        value = array(result) if alike else np.zeros(1)
        for one in alike:
            if not _comparable(one, value) or (one.size == 1 and not origin):  # a number of the source is no weight
                continue
            exact = same_but_for_order(values[one.name], value)
            order = exact if exact is not None else close_but_for_order(values[one.name], value)
            if order is not None:
                recipe = Computed(place, op, origin, order, one.shape, one.dtype)
                found[one.name] = FoundWeight(one, recipe, exact is not None)

    bound = sides.bound
    seen = eager_constants.watch(eager.fresh(bound.module), bound.args, bound.prefix, listen)
    missing = tuple(s for s in work.missing if s.name not in found)
    tensors = {**work.tensors, **{n: array(t) for n, t in seen.lifted.items() if not t.is_complex()}}
    return replace(work, found=(*work.found, *found.values()), missing=missing, tensors=tensors, seen=seen)


def _as_rows(work: Weights) -> Weights:
    found, missing, pieces = [], [], Pieces(work.tensors)
    for one in work.missing:
        values = one.values() if one.is_float else np.zeros(1)
        # numbers that are all equal are found everywhere, and tell nothing
        recipe = pieces.find(one, values) if one.is_float and not uniform(values) else None
        if recipe is not None:
            found.append(FoundWeight(one, recipe))
        else:
            missing.append(one)
    return replace(work, found=(*work.found, *found), missing=tuple(missing))


def _as_folds(work: Weights, module: torch.nn.Module, prefix: str) -> Weights:
    known = folds.norms(module, prefix) if work.missing else {}
    found, missing, names = [], [], work.unfound
    for one in work.missing:
        recipe = folds.folded(one, one.values(), work.tensors, names, known) if known and one.is_float else None
        if recipe is not None:
            found.append(FoundWeight(one, recipe, exact=False))
        else:
            missing.append(one)
    return replace(work, found=(*work.found, *found), missing=tuple(missing))
