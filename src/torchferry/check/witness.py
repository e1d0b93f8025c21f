"""Is a model whose sizes were set free right at other sizes too? Only the file at its one size can be asked; these relations
between the two are what there is to see. Where none of them shows, the repair is refused.

    rows      a sample of a batch gives what it gives alone
    prefix    more behind it leaves the outputs for the first part as they are: causal or local models, samples on any axis
    masked    likewise, where masks hide what is behind
    tiled     the example twice over gives its outputs twice over
    drawn out each element twice gives each element of its outputs twice
    reordered another order gives the outputs in that order, if it did so before

The last three can be fooled by a model that mixes all it sees, so the first of them count only together with the third.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from torchferry.check import graph
from torchferry.check.reshape import Moved
from torchferry.check.trace import Feed, Tracer, Values
from torchferry.records import Fault

GENERAL = ("at-most", "allow-zero")  # rewrites that change nothing where the original works
FAR = (1 << 31) - 1  # an end of a slice beyond any axis
Stretch = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True, slots=True)
class Shown:
    """What is compared: the file as it is and mended, a feed at its size with what it gives, a feed of another size."""

    tracer: Tracer
    mended: onnx.ModelProto
    example: Feed
    before: list[Any]
    feed: Feed
    moved: Moved


def shown(at: Shown) -> bool:
    """Say whether the relations show the mended model to be right at the sizes that moved, each by itself."""
    if any(0 in m[2:] for m in at.moved):  # where there are no elements there is nothing to compare
        return True
    pairs = list(dict.fromkeys((a, b) for _, _, a, b in at.moved))
    groups = [[m for m in at.moved if m[2:] == pair] for pair in pairs]
    if len(groups) == 1 and all(axis == 0 for _, axis, _, _ in groups[0]) and _leads(at, groups[0][0][3]):
        return _rows_agree(at, groups[0])
    return all(_relations_hold(at, own) for own in groups)


def _leads(at: Shown, large: int) -> bool:
    """Whether the first axis of every output is the one that moved: a batch."""
    whole = at.tracer.run(at.mended, at.feed)
    return not isinstance(whole, Fault) and all(isinstance(o, np.ndarray) and o.ndim and o.shape[0] == large for o in whole)


def _rows_agree(at: Shown, own: Moved) -> bool:
    """Whether each row of a batch gives what the file gives for that row alone."""
    small, large, names = own[0][2], own[0][3], {m[0] for m in own}
    whole = at.tracer.run(at.mended, at.feed)
    if isinstance(whole, Fault):
        return False
    for row in range(min(large, 4)):
        single = {n: np.repeat(a[row : row + 1], small, axis=0) if n in names else a for n, a in at.feed.items()}
        alone = at.tracer.run(at.tracer.model, single)
        if isinstance(alone, Fault) or not all(_close(a[:1], w[row : row + 1]) for a, w in zip(alone, whole, strict=True)):
            return False
    return large > 0


def _relations_hold(at: Shown, own: Moved) -> bool:
    """Whether every output is shown by some relation: one that moves along by any, one of a fixed size by the strict ones."""
    behind, masked = (_prefixed(at, own, mask) for mask in (False, True))
    several = own[0][2] > 1 and _keeps_order(at, own)  # of a single element twice over nothing is to be learned
    tiled, drawn = (_stretched(at, own, how) if several else [] for how in (_tile, _draw_out))
    for index in range(len(at.before)):
        moves = any(r[index][1] for r in (tiled, drawn, behind, masked) if r)
        prefix, mask, twice, each = (bool(r) and r[index][0] for r in (behind, masked, tiled, drawn))
        if not ((prefix or mask or twice or each) if moves else (mask or (twice and each))):
            return False
    return bool(at.before)


def _keeps_order(at: Shown, own: Moved) -> bool:
    """Whether the mended model follows a change of order at the new size, if the file does at its own."""
    before = _reordered(at, at.tracer.model, at.example, own, 2)
    return not before or _reordered(at, at.mended, at.feed, own, 3)


def _reordered(at: Shown, model: onnx.ModelProto, feed: Feed, own: Moved, size: int) -> bool:
    """Whether a feed in another order along the axes gives the same outputs in that order; `size` says where its size stands."""
    length = own[0][size]
    order = np.roll(np.arange(length)[::-1], 1)
    other = dict(feed)
    for name, axis, *_ in own:
        other[name] = np.take(other[name], order, axis=axis)
    first, second = (at.tracer.run(model, f) for f in (feed, other))
    if isinstance(first, Fault) or isinstance(second, Fault):
        return False
    return all(_follows(a, b, order) for a, b in zip(first, second, strict=True))


def _follows(a: Any, b: Any, order: np.ndarray) -> bool:
    if not isinstance(a, np.ndarray):
        return False
    axes = [i for i, size in enumerate(a.shape) if size == len(order)]
    return _close(a, b) or any(_close(np.take(a, order, axis=i), b) for i in axes)


def _tile(array: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([array, array], axis=axis)


def _draw_out(array: np.ndarray, axis: int) -> np.ndarray:
    return np.repeat(array, 2, axis=axis)


def _stretched(at: Shown, own: Moved, how: Stretch) -> list[tuple[bool, bool]]:
    """Return for each output whether it is stretched as the inputs are, and whether its size moved; nothing if it fails."""
    feed = dict(at.example)
    for name, axis, _, _ in own:
        feed[name] = how(feed[name], axis)
    after = at.tracer.run(at.mended, feed)
    if isinstance(after, Fault):
        return []
    found = []
    for old, new in zip(at.before, after, strict=True):
        axes = _moved_axes(old, new)
        wanted = old
        for axis in axes or ():
            wanted = how(wanted, axis)
        found.append((axes is not None and _close(wanted, new), bool(axes)))
    return found


def _prefixed(at: Shown, own: Moved, mask: bool) -> list[tuple[bool, bool]]:
    """Return for each output whether its part for the shorter feed stays, and whether its size moved; nothing if it fails."""
    masks = [m[0] for m in own if "mask" in m[0].lower()]
    if mask and not masks:
        return []
    grows = own[0][3] > own[0][2]
    long = {**at.example, **{m[0]: at.feed[m[0]] for m in own}} if grows else dict(at.example)
    short = dict(long)
    for name, axis, *sizes in own:
        short[name] = _cut(short[name], axis, min(sizes))
    for name, axis, *sizes in own if mask else ():
        if name in masks:
            long[name] = long[name].copy()
            long[name][(slice(None),) * axis + (slice(min(sizes), None),)] = 0
    models = (at.tracer.model, at.mended) if grows else (at.mended, at.tracer.model)
    answers = [at.tracer.run(m, f) for m, f in zip(models, (short, long), strict=True)]
    if any(isinstance(a, Fault) for a in answers):
        return []
    return [_part_of(a, b, sorted(own[0][2:])) for a, b in zip(*answers, strict=True)]


def _part_of(short: Any, long: Any, sizes: list[int]) -> tuple[bool, bool]:
    """Whether the one is the other's beginning, and grew as the inputs did: by the same factor, or by as much."""
    axes = _moved_axes(short, long)
    grew = [(short.shape[i], long.shape[i]) for i in axes or ()]
    for axis in axes or ():
        long = _cut(long, axis, short.shape[axis])
    alike = all(b * sizes[0] == a * sizes[1] or b - a == sizes[1] - sizes[0] for a, b in grew)
    return axes is not None and alike and _close(short, long), bool(axes)


def _cut(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(size),)]


def _moved_axes(old: Any, new: Any) -> list[int] | None:
    """Return the axes whose size moved; None where the two cannot be laid beside each other."""
    if not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray) or old.ndim != new.ndim or not old.size or not new.size:
        return None
    return [i for i, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)) if a != b]


def _close(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fiubcV":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=1e-3, atol=1e-5, equal_nan=True))


# --- where nothing needs to be shown ------------------------------------------------------------------


def needed(model: onnx.ModelProto, rewrites: Sequence[dict[str, Any]], old: Values, new: Values) -> bool:
    """Say whether a freed axis needs a witness: something was rewritten, or a node picks places along it by constants."""
    if any(r["do"] not in GENERAL for r in rewrites):
        return True
    fixed = graph.constants(model.graph)
    return any(list(graph.subgraphs(n)) or _picks(n, fixed, old, new) for n in model.graph.node)


def _picks(node: onnx.NodeProto, fixed: dict[str, np.ndarray], old: Values, new: Values) -> bool:
    """Whether a node picks places by constants along an axis that moved: they may be the example's."""
    a, b = (v.get(node.input[0]) if node.input else None for v in (old, new))
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.ndim != b.ndim:
        return False
    moved = [i for i, (x, y) in enumerate(zip(a.shape, b.shape, strict=True)) if x != y]
    values = graph.attributes(node)
    if not moved:
        return False
    if node.op_type in ("Gather", "GatherElements"):
        at = fixed.get(node.input[1])
        return values.get("axis", 0) % a.ndim in moved and at is not None and not np.isin(at, (0, -1)).all()
    if node.op_type in ("GatherND", "ScatterND", "ScatterElements", "Split", "Resize"):
        return any(i in fixed and fixed[i].size for i in node.input[1:])
    if node.op_type == "Slice":
        return _slices(node, fixed, values, moved, a.ndim)
    if node.op_type == "Pad":
        pads = np.asarray(values.get("pads", fixed.get(node.input[1] if len(node.input) > 1 else "", ()))).reshape(-1)
        return len(pads) == 2 * a.ndim and any(pads[i] != pads[i + a.ndim] for i in moved)
    return False


def taken_whole(model: onnx.ModelProto, old: Values, new: Values) -> bool:
    """Say whether a window takes in all of an axis that moved: it was meant to, or just happened to; nothing can tell."""
    for node in model.graph.node:
        a, b = (v.get(node.input[0]) if node.input else None for v in (old, new))
        kernel = graph.attributes(node).get("kernel_shape", ()) if "Pool" in node.op_type else ()
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim == len(kernel) + 2:
            windows = zip(kernel, a.shape[2:], b.shape[2:], strict=True)
            if any(size == was != now for size, was, now in windows):
                return True
    return False


def _slices(node: onnx.NodeProto, fixed: dict[str, np.ndarray], values: dict[str, Any], moved: list[int], rank: int) -> bool:
    """Whether a slice begins or ends at a constant place of a moved axis that is neither its begin nor counted from its end."""
    parts = [values.get(k, fixed.get(node.input[i]) if len(node.input) > i else None) for k, i in SLICE.items()]
    begins, ends = parts[:2]
    if begins is None or ends is None:
        return False
    axes = parts[2] if parts[2] is not None else range(len(begins))
    spans = zip(np.asarray(begins).reshape(-1), np.asarray(ends).reshape(-1), np.asarray(axes).reshape(-1), strict=False)
    return any(int(axis) % rank in moved and (begin > 1 or 0 <= end < FAR) for begin, end, axis in spans)


SLICE = {"starts": 1, "ends": 2, "axes": 3}
