"""Which sizes can move, and which move together: found by trying the eager model."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.inputs.probe import Axis, Prober, Shapes, moved
from torchferry.records import Dim, Size


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: each input's sizes in terms of dims, the example's sizes that go with them, and why axes are fixed."""

    shapes: tuple[tuple[Size, ...], ...]
    dims: tuple[Dim, ...]
    base: Shapes  # the example's sizes, made again without ones on axes that move
    why: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def discover(prober: Prober, names: tuple[str, ...]) -> Found:
    """Return which sizes of the example can move."""
    base: Shapes = tuple(tuple(t.shape) for t in prober.tensors)
    axes = [(i, a) for i, shape in enumerate(base) for a in range(len(shape))]
    classes: list[tuple[Axis, ...]] = []
    left = [x for x in axes if base[x[0]][x[1]] > 0]
    while left:
        first = left[0]
        size = base[first[0]][first[1]]
        equal = [x for x in left if base[x[0]][x[1]] == size]
        same = [x for x in equal if x[1] == first[1]]
        for group in ((first,), tuple(same), tuple(equal)):
            if prober.runs(moved(base, dict.fromkeys(group, size + 1))):
                classes.append(group)
                break
        else:
            group = (first,)
        left = [x for x in left if x not in group]
    dims = []
    shapes: list[list[Size]] = [list(s) for s in base]
    for k, group in enumerate(classes):
        name = "batch_size" if all(a == 0 for _, a in group) and k == 0 else f"{names[group[0][0]]}_dim_{group[0][1]}".replace(".", "_")
        dims.append(Dim(name))
        for i, a in group:
            shapes[i][a] = name
    return Found(tuple(tuple(s) for s in shapes), tuple(dims), base, tuple(() for _ in base))
