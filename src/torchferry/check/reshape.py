"""A Reshape or Expand to constant sizes: which of them are an example's, seen from the shapes at two sizes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx

from torchferry.check import graph

Moved = list[tuple[str, int, int, int]]  # (input of the graph, axis, the example's size, the other size)
Shape = tuple[int, ...]


def new_targets(node: onnx.NodeProto, old: Shape, new: Shape, target: np.ndarray, moved: Moved, source: str) -> list[list[Any]]:
    """Return sizes that do at both shapes what the constant does at the old one, likeliest first; none if it does already."""
    wanted = [int(t) for t in target.reshape(-1)]
    if node.op_type == "Expand":
        expanded = _expanded(wanted, old, new, moved)
        return [expanded] if expanded is not None else []
    zero_is_copy = not graph.attributes(node).get("allowzero", 0)
    at_old = _resolved(wanted, old, zero_is_copy)
    if at_old is None or old == new:
        return []
    found: list[list[Any]] = []
    for left_in, left_out in ((False, False), (False, True), (True, False), (True, True)):
        sizes = _by_groups(old, new, at_old, moved, source, left_in, left_out)
        if sizes is not None and sizes not in found:
            found.append(sizes)
    done = _resolved(wanted, new, zero_is_copy)
    if any([_at(s, new, moved) for s in sizes] == done for sizes in found):
        return []  # the constant does the right thing at both sizes
    found.sort(key=lambda sizes: _likelihood(sizes, at_old, new, moved), reverse=True)
    return [_shortest(sizes, at_old, source) for sizes in found]


def _likelihood(sizes: list[Any], old: list[int], new: Shape, moved: Moved) -> tuple[int, int]:
    """How many sizes move exactly as an input's axis does, and how many of the last ones stay: features do."""
    meant = [_at(s, new, moved) for s in sizes]
    alike = sum((a, b) in {m[2:] for m in moved} for a, b in zip(old, meant, strict=True) if a != b)
    still = next((i for i, (a, b) in enumerate(zip(reversed(old), reversed(meant), strict=True)) if a != b), len(old))
    return alike, still


def _resolved(target: list[int], shape: Shape, zero_is_copy: bool) -> list[int] | None:
    """Return the sizes that a target stands for: 0 copied, -1 worked out; None where they do not fit."""
    sizes = [shape[i] if t == 0 and zero_is_copy and i < len(shape) else t for i, t in enumerate(target)]
    rest = prod(s for s in sizes if s != -1)
    if -1 in sizes and (rest == 0 or prod(shape) % rest):
        return None
    sizes = [prod(shape) // rest if s == -1 else s for s in sizes]
    return sizes if prod(sizes) == prod(shape) else None


def _by_groups(
    old: Shape, new: Shape, target: list[int], moved: Moved, source: str, left_in: bool, left_out: bool
) -> list[Any] | None:
    """Return the target with its moving sizes spelt out, group by group of axes that hold the same elements.

    A size of 1 could belong to the group on its left or on its right: the flags say which, for inputs and outputs.
    """
    sizes: list[Any] = list(target)
    groups = _groups(old, target, left_in, left_out)
    if groups is None:
        return None
    for ins, outs in groups:
        if all(old[i] == new[i] for i in ins):
            continue
        if len(outs) == 1:
            sizes[outs[0]] = _product(ins, old, new, source)
        elif not _divided(sizes, ins, outs, old, new, target, moved, source) and not _named(sizes, outs, target, moved):
            return None
    return sizes


def _groups(old: Shape, target: list[int], left_in: bool, left_out: bool) -> list[tuple[list[int], list[int]]] | None:
    """Return runs of input axes and of output axes that hold the same number of elements, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(target):
        ins: list[int] = []
        outs: list[int] = []
        left = right = 1
        while not ins or not outs or left != right:
            if (left <= right and i < len(old)) or j >= len(target):
                if i >= len(old):
                    break
                left *= old[i]
                ins.append(i)
                i += 1
            else:
                right *= target[j]
                outs.append(j)
                j += 1
        if left != right:
            return None
        while left_in and i < len(old) and old[i] == 1:
            ins.append(i)
            i += 1
        while left_out and j < len(target) and target[j] == 1:
            outs.append(j)
            j += 1
        groups.append((ins, outs))
    return groups


def _product(ins: list[int], old: Shape, new: Shape, source: str) -> Any:
    still = prod(old[i] for i in ins if old[i] == new[i])
    moving = [["size", source, i] for i in ins if old[i] != new[i]]
    factors = moving + ([still] if still != 1 else [])
    return factors[0] if len(factors) == 1 else ["mul", *factors]


def _divided(
    sizes: list[Any], ins: list[int], outs: list[int], old: Shape, new: Shape, target: list[int], moved: Moved, source: str
) -> bool:
    """One axis split into several, as batch * heads is: all but one stay, the first that can takes the rest."""
    whole = prod(new[i] for i in ins)
    same = [o for o in outs if any(old[i] == target[o] and old[i] != new[i] for i in ins)]
    paired = [o for o in outs if (target[o], whole // max(1, prod(target[p] for p in outs if p != o))) in {m[2:] for m in moved}]
    for out in [*paired, *same, *outs]:
        rest = prod(target[o] for o in outs if o != out)
        if rest and whole % rest == 0:
            sizes[out] = ["div", _product(ins, old, new, source), rest] if rest != 1 else _product(ins, old, new, source)
            return True
    return False


def _named(sizes: list[Any], outs: list[int], target: list[int], moved: Moved) -> bool:
    """Sizes that are those of one moved axis of an input."""
    for out in outs:
        hits = [m for m in moved if m[2] == target[out]]
        if len({h[3] for h in hits}) == 1:
            sizes[out] = ["size", hits[0][0], hits[0][1]]
    return any(not isinstance(sizes[o], int) for o in outs)


def _expanded(wanted: list[int], old: Shape, new: Shape, moved: Moved) -> list[Any] | None:
    sizes: list[Any] = list(wanted)
    for back in range(1, len(wanted) + 1):
        here = wanted[-back]
        a, b = (old[-back], new[-back]) if back <= len(old) else (1, 1)
        if a != b and here == a:
            sizes[-back] = 1  # Expand keeps the input's own size
        elif a == 1 and here > 1:
            hits = [m for m in moved if m[2] == here]
            if hits and len({h[3] for h in hits}) == 1:
                sizes[-back] = ["size", hits[0][0], hits[0][1]]
    return sizes if sizes != wanted else None


def _at(size: Any, shape: Shape, moved: Moved) -> int:
    """Return what a size comes to at the new shape."""
    if isinstance(size, int):
        return size
    word, *rest = size
    if word == "size":
        known = next((m[3] for m in moved if m[:2] == tuple(rest)), None)
        return known if known is not None else shape[rest[1]]
    if word == "div":
        return _at(rest[0], shape, moved) // int(rest[1])
    return prod(_at(r, shape, moved) for r in rest)


def _shortest(sizes: list[Any], target: list[int], source: str) -> list[Any]:
    """Return the sizes as a plain constant where that can say it: 0 copies an axis, one -1 takes the rest."""
    plain = [0 if s == ["size", source, i] else s for i, s in enumerate(sizes)]
    moving = [i for i, s in enumerate(plain) if not isinstance(s, int)]
    if len(moving) == 1 and 0 not in target:
        return [-1 if i in moving else s for i, s in enumerate(plain)]
    return plain if not moving else sizes
