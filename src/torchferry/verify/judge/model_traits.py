"""Traits of a model, as far as judging it goes: exact, sorting, random, in which precision it computes."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torchferry.records import Location
from torchferry.verify.run.decisions import LOOKING
from torchferry.verify.run.eager_trace import EXACT, SORTING, Note
from torchferry.verify.trials.landmarks import handles_nan

_VIEWS = ("view", "detach", "clone", "alias", "_to_copy", "squeeze", "unsqueeze", "select", "slice", "permute", "t")


@dataclass(frozen=True, slots=True)
class Traits:
    """What judging needs to know of a model."""

    learned: bool  # it has weights; without any it is a plain function
    ops: frozenset[str]  # the names of all operators that eager ran
    exact: bool  # every op is exactly rounded: there is one right answer
    sorting: Note | None  # the first op that picks among equals
    sorts_last: bool  # and that op's answer is the model's
    attends: bool  # it has an attention kernel, which makes something of infinities in its own way
    looks_for_nan: bool  # the model itself asks whether numbers are finite, and so means to cope with those that are not
    maximises: bool  # it takes maxima or minima, which pass NaN on in torch and pass over it in onnxruntime
    coarsest: str  # the float dtype of the least range that it computes in
    random: tuple[bool, ...]  # which outputs are drawn anew at every call


def traits(module: torch.nn.Module, notes: Sequence[Note], random: tuple[bool, ...]) -> Traits:
    """Return what kind of model this is, from its parameters and from what eager was seen to do."""
    used = {d for n in notes for d in n.dtypes}
    coarsest = next((d for d in ("float16", "bfloat16") if d in used), "float32")
    return Traits(
        learned=any(p.numel() > 0 for p in module.parameters()),
        ops=frozenset(n.location.op or "" for n in notes),
        exact=coarsest == "float32" and all(n.location.op in EXACT for n in notes),  # onnxruntime computes halves in float32
        sorting=next((n for n in notes if picks(n)), None),
        sorts_last=_sorts_last(notes),
        attends=any("attention" in n.op for n in notes),
        looks_for_nan=any(n.location.op in LOOKING and _says_so(n.location) for n in notes) or handles_nan(module),
        maximises=any(takes_maximum(n) for n in notes),
        coarsest=coarsest,
        random=random,
    )


def _says_so(place: Location) -> bool:
    """Return whether the line itself speaks of NaN or infinity: torch.quantile looks for NaN, and its caller may not."""
    return not place.file or not place.line or bool(re.search(r"nan|inf|finite", linecache.getline(place.file, place.line)))


def picks(note: Note) -> bool:
    """Return whether an op picks an order or a place among equals."""
    return note.location.op in SORTING and (len(note.dtypes) > 1 or "int64" in note.dtypes)


def takes_maximum(note: Note) -> bool:
    """Return whether an op gives the largest or smallest of several numbers."""
    return note.location.op in ("amax", "amin", "max", "min") or "max_pool" in note.op


def _sorts_last(notes: Sequence[Note]) -> bool:
    """Return whether nothing but a change of view or dtype follows the last op that sorts."""
    after = [n.location.op for n in notes]
    while after and after[-1] in _VIEWS:
        after.pop()
    return bool(after) and after[-1] in SORTING
