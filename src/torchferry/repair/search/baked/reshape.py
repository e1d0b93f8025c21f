"""A Reshape or Expand to constant sizes: which of them are an example's, seen from the shapes at two sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx

from torchferry.check.proof.moved_size import Moved
from torchferry.check.reading import graph
from torchferry.records.rewrites import Difference, Product, Quotient, SizeOf, Sizes, SizeTerm

Shape = tuple[int, ...]
MOST_READINGS = 3  # of an axis that is divided into several: which of them moves


@dataclass(frozen=True, slots=True)
class Turn:
    """A Reshape seen at two sizes: its input's shapes, what its target comes to at the old one, and what moved."""

    old: Shape
    new: Shape
    target: list[int]
    moved: Moved
    source: str  # the value that is reshaped

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """The sizes of inputs that moved: (the example's, the other)."""
        return {(m[2], m[3]) for m in self.moved}


def new_targets(node: onnx.NodeProto, target: np.ndarray, shapes: tuple[Shape, Shape], moved: Moved) -> list[Sizes]:
    """Return sizes that do at both shapes what the constant does at the first, likeliest first; none if it does already."""
    wanted, (old, new) = [int(t) for t in target.reshape(-1)], shapes
    if node.op_type == "Expand":
        expanded = _expanded(wanted, old, new, moved)
        return [expanded] if expanded is not None else []
    zero_is_copy = not graph.attributes(node).get("allowzero", 0)
    at_old = _resolved(wanted, old, zero_is_copy)
    if at_old is None or old == new:
        return []
    turn = Turn(old, new, at_old, moved, node.input[0])
    found: list[Sizes] = []
    likely: list[Sizes] = []
    for choice in range(MOST_READINGS):
        for left_in, left_out in ((False, False), (False, True), (True, False), (True, True)):
            sizes = _by_groups(turn, left_in, left_out, choice)
            if sizes is not None and sizes not in found:
                found.append(sizes)
        likely = likely or list(found)
    done = _resolved(wanted, new, zero_is_copy)
    if any([_at(s, turn) for s in sizes] == done for sizes in likely):
        return []  # the constant does the right thing at both sizes
    found.sort(key=lambda sizes: _likelihood(sizes, turn), reverse=True)
    return [_shortest(sizes, turn) for sizes in found]


def _likelihood(sizes: Sizes, turn: Turn) -> tuple[int, int]:
    """How many sizes move exactly as an input's axis does, and how many of the last ones stay: features do."""
    meant = [_at(s, turn) for s in sizes]
    alike = sum((a, b) in turn.pairs for a, b in zip(turn.target, meant, strict=True) if a != b)
    backwards = zip(reversed(turn.target), reversed(meant), strict=True)
    return alike, next((i for i, (a, b) in enumerate(backwards) if a != b), len(meant))


def _resolved(target: list[int], shape: Shape, zero_is_copy: bool) -> list[int] | None:
    """Return the sizes that a target stands for: 0 copied, -1 worked out; None where they do not fit."""
    sizes = [shape[i] if t == 0 and zero_is_copy and i < len(shape) else t for i, t in enumerate(target)]
    rest = prod(s for s in sizes if s != -1)
    if -1 in sizes and (rest == 0 or prod(shape) % rest):
        return None
    sizes = [prod(shape) // rest if s == -1 else s for s in sizes]
    return sizes if prod(sizes) == prod(shape) else None


def _by_groups(turn: Turn, left_in: bool, left_out: bool, choice: int) -> Sizes | None:
    """Return the target with its moving sizes spelt out, group by group of axes that hold the same elements.

    A size of 1 could belong to the group on its left or on its right: the flags say which, for inputs and outputs.
    Where an axis is divided, the likeliest part takes what moves, or, by `choice`, the next likely one.
    """
    sizes: list[SizeTerm] = list(turn.target)
    groups = _groups(turn.old, turn.target, left_in, left_out)
    if groups is None:
        return None
    for ins, outs in groups:
        if all(turn.old[i] == turn.new[i] for i in ins):
            continue
        if len(outs) == 1:
            sizes[outs[0]] = _product(ins, turn)
        elif not _divided(sizes, ins, outs, turn, choice) and not _named(sizes, outs, turn):
            return None
    return tuple(sizes)


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


def _product(ins: list[int], turn: Turn) -> SizeTerm:
    still = prod(turn.old[i] for i in ins if turn.old[i] == turn.new[i])
    moving = [SizeOf(turn.source, i) for i in ins if turn.old[i] != turn.new[i]]
    factors: Sizes = (*moving, still) if still != 1 else tuple(moving)
    return factors[0] if len(factors) == 1 else Product(factors)


def _divided(sizes: list[SizeTerm], ins: list[int], outs: list[int], turn: Turn, choice: int) -> bool:
    """One axis split into several, as batch * heads is: all but one stay, the likeliest that can takes the rest."""
    whole = prod(turn.new[i] for i in ins)
    rest = {o: prod(turn.target[p] for p in outs if p != o) for o in outs}
    paired = [o for o in outs if (turn.target[o], whole // max(1, rest[o])) in turn.pairs]
    same = [o for o in outs if any(turn.old[i] == turn.target[o] and turn.old[i] != turn.new[i] for i in ins)]
    able = [o for o in dict.fromkeys([*paired, *same, *outs]) if rest[o] and whole % rest[o] == 0 and _in_order(o, ins, turn)]
    if not able:
        return False
    out, product = able[min(choice, len(able) - 1)], _product(ins, turn)
    sizes[out] = Quotient(product, rest[out]) if rest[out] != 1 else product
    return True


def _in_order(out: int, ins: list[int], turn: Turn) -> bool:
    """Whether an axis that moves can be, or be part of, an axis of the result: a Reshape keeps elements in their order."""
    start, end = prod(turn.target[:out]), prod(turn.target[: out + 1])
    moving = ((prod(turn.old[:i]), prod(turn.old[: i + 1])) for i in ins if turn.old[i] != turn.new[i])
    return any((start <= a and b <= end) or (a <= start and end <= b) for a, b in moving)


def _named(sizes: list[SizeTerm], outs: list[int], turn: Turn) -> bool:
    """Sizes that are those of one moved axis of an input."""
    for out in outs:
        hits = [m for m in turn.moved if m[2] == turn.target[out]]
        if len({h[3] for h in hits}) == 1:
            sizes[out] = SizeOf(hits[0][0], hits[0][1])
    return any(not isinstance(sizes[o], int) for o in outs)


def _expanded(wanted: list[int], old: Shape, new: Shape, moved: Moved) -> Sizes | None:
    sizes: list[SizeTerm] = list(wanted)
    for back in range(1, len(wanted) + 1):
        here = wanted[-back]
        a, b = (old[-back], new[-back]) if back <= len(old) else (1, 1)
        if a != b and here == a:
            sizes[-back] = 1  # Expand keeps the input's own size
        elif a == 1 and here > 1:
            hits = [m for m in moved if m[2] == here]
            if hits and len({h[3] for h in hits}) == 1:
                sizes[-back] = SizeOf(hits[0][0], hits[0][1])
    return tuple(sizes) if sizes != wanted else None


def _at(size: SizeTerm, turn: Turn) -> int:
    """Return what a size comes to at the new shape."""
    match size:
        case SizeOf(value=value, axis=axis):
            known = next((m[3] for m in turn.moved if m[:2] == (value, axis)), None)
            return known if known is not None else turn.new[axis]
        case Product(factors=factors):
            return prod(_at(f, turn) for f in factors)
        case Quotient(size=whole, by=by):
            return _at(whole, turn) // by
        case Difference(size=whole, by=by):
            return _at(whole, turn) - by
        case _:
            return size


def _shortest(sizes: Sizes, turn: Turn) -> Sizes:
    """Return the sizes as a plain constant where that can say it: 0 copies an axis, one -1 takes the rest."""
    plain = tuple(0 if s == SizeOf(turn.source, i) else s for i, s in enumerate(sizes))
    moving = [i for i, s in enumerate(plain) if not isinstance(s, int)]
    if len(moving) == 1 and 0 not in turn.target:
        return tuple(-1 if i in moving else s for i, s in enumerate(plain))
    return plain if not moving else sizes
