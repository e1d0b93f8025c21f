"""Sizes that a file names apart and that belong together: the batch of the ids and the batch of their mask.

An exporter gives every axis a symbol of its own unless told otherwise. A mask of one row goes with any batch in eager, by
broadcasting, but nobody means that; with any other number of rows eager refuses it, which tells that the two are one size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from torchferry.records import Fault
from torchferry.verify.run.both_sides import BothSides

Links = Mapping[str, frozenset[str]]  # dim -> all that must be equal to it, itself included


def coupled(sides: BothSides, sizes: Mapping[str, int]) -> Links:
    """Return which dims of equal size in the example eager takes only when they move together."""
    alike: dict[int, list[str]] = defaultdict(list)
    for name, size in sizes.items():
        alike[size].append(name)
    links: dict[str, frozenset[str]] = {}
    for size, names in alike.items():
        lonely = [n for n in names if _of_a_mask(sides, n) or not _takes(sides, [n], size + 1)] if len(names) > 1 else []
        for group in _groups(sides, lonely, size + 1):
            links |= dict.fromkeys(group, frozenset(group))
    return links


def _groups(sides: BothSides, lonely: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return the dims that move together: in pairs where that is enough, else all."""
    pairs: list[tuple[str, ...]] = [p for p in combinations(lonely, 2) if _takes(sides, p, size)]
    if sorted(n for p in pairs for n in p) == sorted(lonely):
        return pairs
    return [tuple(lonely)] if len(lonely) > 1 and _takes(sides, lonely, size) else []


def _of_a_mask(sides: BothSides, name: str) -> bool:
    """Return whether a dim is a mask's alone: a mask has the sizes of what it masks, whatever eager puts up with."""
    owners = [s.name for s in sides.bound.signature.inputs if name in s.shape]
    return all(sides.bound.roles.get(owner) == "mask" for owner in owners)


def _takes(sides: BothSides, names: Sequence[str], size: int) -> bool:
    """Return whether eager takes these dims at a size, all others as in the example."""
    try:
        args = sides.bound.vary(dict.fromkeys(names, size), "random", 0)
    except ValueError:
        return False
    return not isinstance(sides.eager(args), Fault)


def together(sizes: Mapping[str, int], links: Links) -> dict[str, int]:
    """Return the sizes with those that belong together made equal; the first one named decides."""
    chosen: dict[str, int] = {}
    for name, size in sizes.items():
        if name not in chosen:
            chosen |= dict.fromkeys(links.get(name, (name,)), size)
    return chosen
