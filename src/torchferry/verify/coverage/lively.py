"""Lively weights: the same trials with weights redrawn so that every layer gives numbers of order one, alike on both sides.

A graph does not hang on the values of its weights, but what can be seen of it does: with fresh weights of 0.02 attention is
flat, a threshold is never passed, an expert never asked. The model is a copy, never the user's own.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from torchferry import eager
from torchferry.records import Bound, Fault
from torchferry.verify.arrays import Array, array, is_float
from torchferry.verify.coverage import eager_constants
from torchferry.verify.coverage.equality import fingerprint, uniform
from torchferry.verify.coverage.recipes import Computed, Rows, as_rows
from torchferry.verify.coverage.rewritten import Place, rewrite
from torchferry.verify.coverage.weights import Weights
from torchferry.verify.judge.tolerance import measure
from torchferry.verify.judge.trial import Bench
from torchferry.verify.run.both_sides import session_options

GAINS = (1.0, 2.0)  # of one draw and the next: twice as large ones open what the others do not
TRIES = 3  # halvings of a gain with which the model runs over
REDRAWN = 2**22  # numbers; a larger weight is scaled as it is, which costs less
OVER = 1e6  # an output as large as this comes of growth from layer to layer, and is mostly rounding
LARGEST = 2**30  # bytes of weights beyond which no second model is held in memory
MANY = 4  # numbers that are not sorted by chance


@dataclass(frozen=True, slots=True)
class Redrawable:
    """The model's weights that can be redrawn, those in a group alike; or why none can."""

    groups: tuple[tuple[str, ...], ...] = ()
    why_not: str = ""

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return frozenset(n for group in self.groups for n in group)


def redrawable(work: Weights, bound: Bound) -> Redrawable:
    """Return which weights can be changed on both sides alike: the file's counterparts of each must all be known."""
    if eager.weight_bytes(bound.module) > LARGEST:
        return Redrawable(why_not="the model is too large to be held twice")
    unknown = [s.name for s in (*work.missing, *work.loose) if s.is_float]
    if unknown:
        return Redrawable(why_not=f"`{unknown[0]}` is not among the model's own numbers")
    if not work.seen.complete:
        return Redrawable(why_not="the model cannot be watched while it runs")
    held = eager_constants.held(bound.module, bound.prefix)
    movable = {n for n, t in held.items() if isinstance(t, torch.nn.Parameter) or n.endswith(("running_mean", "running_var"))}
    made_of = frozenset[str]().union(*(f.recipe.origin for f in (*work.found, *work.few)))
    settled = work.seen.written | work.seen.deciding | _ambiguous(work)
    for one in work.few:  # a 1 or a 2 may be anybody's
        settled |= one.recipe.origin if one.stored.size == 1 and _round(one.stored.values()) else frozenset()
    free = {n for n, t in work.tensors.items() if n in movable - settled and is_float(t)}
    twins = _twins(work)
    together = [tuple(g) for g in twins if set(g) <= free and set(g) & made_of]
    alone = [(n,) for n in work.tensors if n in free & made_of and not any(n in g for g in twins)]
    return Redrawable((*alone, *together), "" if alone or together else "it has no weights to redraw")


def _round(values: Array) -> bool:
    return bool((np.abs(values) * 8 == np.round(np.abs(values) * 8)).all())


def _ambiguous(work: Weights) -> set[str]:
    """Return weights that the file has by their numbers and not by their names, where other tensors may have these numbers too.

    Those of which all numbers are equal; and those beside which the same module has another that nothing in the file is known
    to be: a weight whose norm is still what it began with is the same before and after it is normalised.
    """
    unnamed = frozenset[str]().union(*(f.recipe.origin for f in (*work.found, *work.few) if f.stored.name not in work.names))
    # a file keeps equal tensors once: ones that several operators take may be a weight to one, and plain ones to another
    shared = frozenset[str]().union(*(f.recipe.origin for f in (*work.found, *work.few) if len(f.stored.takers) > 1))
    by_name = set(work.names.values()) - unnamed - shared
    found = {n for n, t in work.tensors.items() if n not in by_name and uniform(t)}
    lacking = {name.rpartition(".")[0] for name in work.unfound}
    found |= {n for n in unnamed if "." in n and n.rpartition(".")[0] in lacking}
    for one in (*work.found, *work.few):
        for piece in one.recipe.pieces if isinstance(one.recipe, Rows) else ():
            if uniform(as_rows(work.tensors[piece.name], piece.axis)[piece.start : piece.stop]):
                found.add(piece.name)
    return found


def _twins(work: Weights) -> list[list[str]]:
    """Return the weights that are equal to each other, unless the file knows each of them by its name."""
    groups: dict[object, list[str]] = {}
    for name, tensor in work.tensors.items():
        groups.setdefault(fingerprint(tensor), []).append(name)
    known = set(work.names.values())
    return [g for g in groups.values() if len(g) > 1 and not set(g) <= known]


@contextmanager
def lively(bench: Bench, work: Weights, which: Redrawable, draw: int, room: Path | None = None) -> Iterator[Bench | str]:
    """Give the bench with redrawn weights on both sides, or a word on why it cannot be; the copies are gone afterwards."""
    sides = bench.sides
    made = _model(sides.bound, work, which, draw)
    if isinstance(made, str):
        yield made
        return
    module, tensors, computed = made
    numbers: dict[Place, Array] = {}
    for found in (*work.found, *work.few):
        if found.recipe.origin & which.names:
            values = found.recipe.made(tensors, computed)
            if values is None:
                yield f"`{found.stored.name}` is computed in another way then"
                return
            numbers[found.stored.graph, found.stored.name] = values
    with tempfile.TemporaryDirectory(prefix=".torchferry-", dir=room) as folder:
        path, model = rewrite(sides, numbers, Path(folder))
        key = sides.worker.open(path, **session_options(sides.file.settings))
        if isinstance(key, Fault):
            yield key.text
            return
        bound, file = replace(sides.bound, module=module), replace(sides.file, path=path)
        allowed = measure(module, [sides.bound.args], bench.traits.coarsest)
        yield replace(bench, sides=replace(sides, bound=bound, file=file, session=key, model=model), allowed=allowed, followed=[])
        sides.worker.close(key)


Made = tuple[torch.nn.Module, dict[str, Array], dict[int, Array]]


def _model(bound: Bound, work: Weights, which: Redrawable, draw: int) -> Made | str:
    """Return a copy of the model with redrawn weights, its tensors, and what it computes of them; or why there is none."""
    gain, told = GAINS[draw % len(GAINS)], ""
    wanted = {f.recipe.place for f in (*work.found, *work.few) if isinstance(f.recipe, Computed)}
    for _ in range(TRIES):
        twin = eager.whole_copy(bound.module)
        if twin is None:
            return "the model cannot be copied"
        _redraw(twin, bound.prefix, which, gain, draw)
        held = eager_constants.held(twin, bound.prefix)
        tensors = {n: array(t) if isinstance(t, torch.nn.Parameter) else array(t).copy() for n, t in held.items()}
        computed: dict[int, Array] = {}

        def listen(place: int, op: str, result: torch.Tensor, origin: frozenset[str], kept: dict[int, Array] = computed) -> None:
            if place in wanted:
                kept[place] = array(result).copy()

        seen = eager_constants.watch(eager.fresh(twin), bound.args, bound.prefix, listen)
        if not seen.complete:
            told = "the model does not run with them"
        elif seen.ops != work.seen.ops:
            told = "the model goes another way with them"
        elif seen.largest < OVER:
            return twin, tensors, computed
        else:
            told = "the model runs over with them"
        gain /= 2
    return told


def _redraw(module: torch.nn.Module, prefix: str, which: Redrawable, gain: float, draw: int) -> None:
    """Redraw a copy's weights in place; recurrent modules hold theirs twice."""
    held = eager_constants.held(module, prefix)
    with torch.no_grad():
        for number, group in enumerate(which.groups):
            generator = torch.Generator().manual_seed(1000003 * draw + number)
            new = _drawn(group[0], held[group[0]], gain, generator)
            for name in group:
                held[name].copy_(new.reshape(held[name].shape).to(held[name].dtype))


def _drawn(name: str, old: torch.Tensor, gain: float, generator: torch.Generator) -> torch.Tensor:
    """Return new numbers for a weight, of a size that its kind asks for; positive and sorted ones stay so."""
    values, last = old.detach().to(torch.float32), name.rpartition(".")[2]
    if last == "running_var":
        return 0.5 + 1.5 * torch.rand(old.shape, generator=generator)
    if old.numel() > REDRAWN:
        return values * (gain * _spread(old) / float(values.std().clamp(min=1e-12)))
    noise = torch.randn(old.shape, generator=generator)
    if bool((values >= 0).all()) and bool((values > 0).any()):
        new = values * torch.exp(0.3 * noise)
    else:
        new = gain * (_spread(old) if old.dim() >= 2 else 0.5) * noise
    steps = values.diff(dim=-1) if old.dim() and old.shape[-1] > MANY else None
    if steps is not None and bool((steps >= 0).all()) and bool((steps > 0).any()):
        return new.sort(dim=-1).values
    return new


def _spread(old: torch.Tensor) -> float:
    """Return a spread with which a product with this weight keeps numbers of order one."""
    rows, rest = old.shape[0], math.prod(old.shape[1:])
    return 1.0 / math.sqrt(max(1, min(rest, rows) if old.dim() == 2 else rest))
