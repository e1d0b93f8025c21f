"""Which sizes can move, which move together and how far: found by trying the eager model.

units -> ones made two -> ties (moving.py) -> what was asked for -> bounds (bounds.py) -> names (axis_names.py)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torchferry.errors import UsageError
from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.axis_names import name_roots
from torchferry.inputs.sizes.batches import tie_batches
from torchferry.inputs.sizes.bounds import Span, spans
from torchferry.inputs.sizes.by_examples import add_moves, let_go, widened
from torchferry.inputs.sizes.hints import symbolic_sizes
from torchferry.inputs.sizes.moving import Search, Unit
from torchferry.inputs.sizes.probing import Axis, Prober, Shapes, moved
from torchferry.inputs.sizes.reasons import why_fixed
from torchferry.inputs.sizes.search_state import Ties
from torchferry.records import Dim, Finding, Location, Size
from torchferry.records.findings import AskedAxisDoesNotMove
from torchferry.records.signature import folded

SLOW = 2.0  # seconds for one call of the model, from which on sizes are first tried without computing
LONG_LIST = 5  # from here on the items of a list are tried together, as one by one would take too many calls


@dataclass(frozen=True, slots=True)
class Ask:
    """What the user asked of an axis: a name, and the range that must hold (None: as far as the model goes)."""

    name: str | None = None
    low: int | None = None
    high: int | None = None
    exact: bool = False  # the name was given to one size on purpose: another name for the same size is a contradiction


@dataclass(frozen=True, slots=True)
class FoundSizes:
    """What was found: each input's sizes in terms of dims, the example's sizes that go with them, and why axes are fixed."""

    shapes: tuple[tuple[Size, ...], ...]
    dims: tuple[Dim, ...]
    base: Shapes  # the example's sizes, made again without ones on axes that move
    why: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, int]  # each dim in the example
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    conditions: tuple[str, ...] = ()  # on several dims at once: "past_sequence_length + sequence_length <= 1024"
    pointing: tuple[tuple[Axis, int], ...] = ()  # (axis, size): integers beyond that size are indices into the axis


def nothing_moves(tensors: Sequence[object]) -> FoundSizes:
    """Return what stands for a file of fixed sizes."""
    base: Shapes = tuple(tuple(t.shape) for t in tensors)  # type: ignore[attr-defined]
    return FoundSizes(base, (), base, tuple(("",) * len(s) for s in base), {})


def discover(
    prober: Prober,
    names: Sequence[str],
    asked: Mapping[Axis, Ask] | None = None,
    must: frozenset[Axis] = frozenset(),
    empty: Collection[str | Axis] = (),
    calls: Callable[[], Sequence[Shapes]] = tuple,
) -> FoundSizes:
    """Return which sizes move: all that can when `asked` is None, otherwise those asked for and what is tied to them.

    `must` are the axes that differ between the user's examples, `calls` gives the sizes of those that the model takes;
    `empty` are the dims that are asked to go down to 0, and the axes that an example shows at 0.
    """
    example: Shapes = tuple(tuple(t.shape) for t in prober.tensors)
    ties = as_asked(prober, asked, names, example) if asked and not must - asked.keys() else None
    if ties is None:
        ties = _search(prober, names, example)
        _settle_ones(prober, ties, example)
        _tie_idle_masks(prober, ties)
        tie_batches(prober, ties)
        if asked is not None:
            _same_name_same_size(ties, asked, names, example)
            _one_name_each(ties, asked, names)
            _only_asked(ties, {**asked, **dict.fromkeys(must, Ask())}, example)
    wanted = {axis: ask.name for axis, ask in (asked or {}).items() if ask.name}
    shown = [example, *calls()] if must else []
    let_go(ties, shown, wanted)
    if must - ties.sizes.keys():
        add_moves(ties, must, shown)
    ranks = [len(s) for s in example]
    called = name_roots(ties, names, prober.parts, ranks, wanted)
    zero = {ties.sizes.get(axis) for axis in empty if isinstance(axis, tuple)} | {r for r in ties.roots if called[r] in empty}
    far = spans(prober, ties, {root for root in ties.roots if root in zero or _is_past(ties, root, prober)})
    far = {root: widened(span, root, ties, shown) for root, span in far.items()}
    dims = tuple(_dim(root, called[root], far[root], ties, asked=asked or {}, must=must) for root in ties.roots)
    shapes = tuple(tuple(_renamed(ties.sizes.get((i, a), n), called) for a, n in enumerate(s)) for i, s in enumerate(ties.base))
    why = tuple(
        tuple("" if (i, a) in ties.sizes else _reason(prober, ties, (i, a)) for a in range(len(s)))
        for i, s in enumerate(ties.base)
    )
    should = {**dict.fromkeys(asked or {}, False), **dict.fromkeys(must, True)}
    findings = _refused(should, ties, why=why, names=names, example=example)
    sizes = {called[root]: n for root, n in ties.roots.items()}
    shared = {
        span.sharing: f"{' + '.join(called[r] for r in span.sharing)} <= {span.total}" for span in far.values() if span.sharing
    }
    conditions = tuple(shared.values())
    notes = (*table(names, shapes, dims, why), *conditions)
    return FoundSizes(shapes, dims, ties.base, why, sizes, notes, findings, conditions, tuple(_pointed_into(prober, ties)))


def table(
    names: Sequence[str], shapes: Sequence[Sequence[Size]], dims: Sequence[Dim], why: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """Return what was found as lines for the user: `batch_size = input_ids[0] = attention_mask[0] (1..)`."""
    lines = []
    places: dict[Size, list[str]] = {}
    for name, shape, reasons in zip(names, shapes, why, strict=True):
        for axis, (size, reason) in enumerate(zip(shape, reasons, strict=True)):
            if isinstance(size, str):
                places.setdefault(size, []).append(f"{name}[{axis}]")
            else:
                lines.append(f"{name}[{axis}] = {size}" + (f" ({reason})" if reason else ""))
    spans = {d.name: str(d).split(" = ", 1)[1].replace(" (", ": ", 1).removesuffix(")") for d in dims}
    moving = []
    for size, axes in places.items():
        listed = " = ".join(folded(axes))
        moving.append(f"{size} = {listed} ({spans[str(size)]})" if size in spans else f"{listed} = {size}")
    return (*moving, *folded(lines))


# --- before the search ---------------------------------------------------------------------------


def _units(names: Sequence[str], shapes: Shapes, prober: Prober) -> list[Unit]:
    """Return the axes to try, those of look-alike inputs (the layers of a cache, the items of a long list) as one."""
    alike: dict[object, list[int]] = {}
    patterns = [re.sub(r"\b(key|value)$", "kv", re.sub(r"\d+", "#", name)) for name in names]
    for i, pattern in enumerate(patterns):
        together = prober.parts[i].role == "cache" or patterns.count(pattern) >= LONG_LIST
        alike.setdefault((pattern, shapes[i], prober.tensors[i].dtype) if together else i, []).append(i)
    return [
        tuple((i, a) for i in members)
        for members in alike.values()
        for a in range(len(shapes[members[0]]))
        if shapes[members[0]][a] > 0
    ]


def _without_ones(prober: Prober, example: Shapes) -> Shapes:
    """Return the example's sizes with a batch of one made two, and none made some, where the model takes that.

    One broadcasts and hides ties; and of nothing, nobody can tell whether it moves.
    """
    some = next(n for n in itertools.count(3) if all(n not in shape for shape in example))
    none = moved(example, {(i, a): some for i, s in enumerate(example) for a, n in enumerate(s) if n == 0})
    base = none if none == example or prober.runs(none) else example
    tried = moved(base, {(i, 0): 2 for i, s in enumerate(base) if s and s[0] == 1})
    return tried if tried != base and prober.runs(tried) else base


def _settle_ones(prober: Prober, ties: Ties, example: Shapes) -> None:
    """Make sizes of one, or none, two where they move, and give the others back what they were."""
    back = {(i, a): n for i, s in enumerate(example) for a, n in enumerate(s) if n <= 1 and (i, a) not in ties.sizes}
    ties.base = moved(ties.base, back)
    for root, size in list(ties.roots.items()):
        if size <= 1:
            better = next((n for n in (2, 3) if prober.runs(ties.shapes(**{root: n}))), size)
            ties.base = ties.shapes(**{root: better})
            ties.roots[root] = better


def _tie_idle_masks(prober: Prober, ties: Ties) -> None:
    """Tie the sizes of a mask that the model does not look at to those of the inputs it belongs to: nobody varies them alone."""
    for root in list(ties.roots):
        axes = [axis for axis, size in ties.sizes.items() if size == root]
        if not axes or any(prober.parts[i].role not in ("mask", "types", "positions") for i, _ in axes):
            continue
        for other, size in ties.roots.items():
            same = [axis for axis, s in ties.sizes.items() if s == other and axis[1] == axes[0][1]]
            if other != root and size == ties.roots[root] and same:
                ties.merge(root, other)
                break


def _search(prober: Prober, names: Sequence[str], example: Shapes) -> Ties:
    """Return the ties; those found on stand-ins only if the model, all sizes moved, runs on tensors as well."""
    if prober.seconds_per_call > SLOW:
        prober.use_stand_ins()
    ties = _searched(prober, names, example)
    if prober.stand_ins is not None:
        prober.use_tensors()
        more = {root: size + 1 + k for k, (root, size) in enumerate(ties.roots.items()) if root not in ties.ends | ties.steps}
        if not prober.runs(ties.shapes(**more)):
            ties = _searched(prober, names, example)
    return ties


def _searched(prober: Prober, names: Sequence[str], example: Shapes) -> Ties:
    base = _without_ones(prober, example)
    return Search(prober, base, _units(names, base, prober), lambda: symbolic_sizes(prober.module, prober.tensors)).run()


# --- what was asked for --------------------------------------------------------------------------


def as_asked(prober: Prober, asked: Mapping[Axis, Ask], names: Sequence[str], example: Shapes) -> Ties | None:
    """Return the ties just as they were asked for, if every axis has a name and the model goes along; None otherwise."""
    if any(ask.name is None for ask in asked.values()):
        return None
    ties = Ties(example)
    dims = {name for ask in asked.values() for name in size_text.names(str(ask.name))}
    roots = {name: f"r{k}" for k, name in enumerate(sorted(dims))}
    for (i, a), ask in asked.items():
        ties.sizes[i, a] = re.sub(r"[^\W\d]\w*", lambda m: roots[m[0]], str(ask.name))
        if ask.name in roots:
            before = ties.roots.setdefault(roots[str(ask.name)], example[i][a])
            if before != example[i][a]:
                raise _two_sizes(str(ask.name), asked, names, example)
    if roots.values() - ties.roots.keys() or ties.shapes() != example:
        return None
    _settle_ones(prober, ties, example)
    taken = {n for shape in ties.base for n in shape}
    other: dict[str, int] = {}
    for root, size in ties.roots.items():  # all at once and all different: what is tied unasked shows up as a refusal
        other[root] = next(n for n in itertools.count(size + 1) if n not in taken)
        taken.add(other[root])
    return ties if prober.runs(ties.shapes(**other)) else None


def _two_sizes(name: str, asked: Mapping[Axis, Ask], names: Sequence[str], example: Shapes) -> UsageError:
    places = {example[i][a]: f"`{names[i]}[{a}]` is {example[i][a]}" for (i, a), ask in asked.items() if ask.name == name}
    return UsageError(f"`{name}` stands for two sizes in the example: {' and '.join(places.values())}; give them different names")


def _same_name_same_size(ties: Ties, asked: Mapping[Axis, Ask], names: Sequence[str], example: Shapes) -> None:
    """Tie axes that the user gave one name; a name that stands for two sizes in the example is refused."""
    first: dict[str, Axis] = {}
    for axis, ask in asked.items():
        if ask.name is None:
            continue
        other = first.setdefault(ask.name, axis)
        if example[axis[0]][axis[1]] != example[other[0]][other[1]]:
            raise _two_sizes(ask.name, asked, names, example)
        one, two = ties.sizes.get(other), ties.sizes.get(axis)
        if isinstance(one, str) and isinstance(two, str) and one != two and {one, two} <= ties.roots.keys():
            ties.merge(two, one)
            ties.base = moved(ties.base, {a: ties.roots[one] for a, s in ties.sizes.items() if s == one})


def _one_name_each(ties: Ties, asked: Mapping[Axis, Ask], names: Sequence[str]) -> None:
    """Refuse two names for sizes that the model makes equal."""
    first: dict[Size, tuple[Axis, str]] = {}
    for (i, a), ask in asked.items():
        size = ties.sizes.get((i, a))
        if not ask.exact or not ask.name or size not in ties.roots:
            continue
        (j, b), name = first.setdefault(size, ((i, a), ask.name))
        if name != ask.name:
            raise UsageError(
                f"`{names[j]}[{b}]` ({name}) and `{names[i]}[{a}]` ({ask.name}) must be equal in the model; give them one name"
            )


def _only_asked(ties: Ties, asked: Mapping[Axis, Ask], example: Shapes) -> None:
    kept = {root for axis in asked for root in size_text.names(ties.sizes.get(axis, 0))}
    for axis, size in list(ties.sizes.items()):
        if not size_text.names(size) & kept:
            del ties.sizes[axis]
    needed = {root for size in ties.sizes.values() for root in size_text.names(size)}
    for root in list(ties.roots):
        if root not in needed:
            del ties.roots[root]
    ties.base = moved(ties.base, {(i, a): n for i, s in enumerate(example) for a, n in enumerate(s) if (i, a) not in ties.sizes})


def _refused(
    axes: Mapping[Axis, bool], ties: Ties, *, why: Sequence[Sequence[str]], names: Sequence[str], example: Shapes
) -> tuple[AskedAxisDoesNotMove, ...]:
    """Return a finding for each axis that should move (True: the examples differ there) and that the model does not let move."""
    found = []
    for axis, differs in axes.items():
        if axis in ties.sizes:
            continue
        i, a = axis
        where = Location(input_name=names[i])
        found.append(AskedAxisDoesNotMove(names[i], a, example[i][a], why[i][a], from_examples=differs, location=where))
    return tuple(found)


# --- after the search ----------------------------------------------------------------------------


def _pointed_into(prober: Prober, ties: Ties) -> Iterator[tuple[Axis, int]]:
    """Yield the axes that shrank only with smaller integers, with the smallest size at which that happened."""
    for root in ties.roots:
        axis = next((a for a, size in ties.sizes.items() if size == root), None)
        low = [
            s[axis[0]][axis[1]] for s in prober.lowered if axis is not None and s[axis[0]][axis[1]] < ties.base[axis[0]][axis[1]]
        ]
        others = [s for s in prober.lowered if axis is not None and s[axis[0]][axis[1]] >= ties.base[axis[0]][axis[1]]]
        if axis is not None and low and not others:
            yield axis, max(low)


def _is_past(ties: Ties, root: str, prober: Prober) -> bool:
    """Whether a root is the length of a cache: those start empty."""
    axes = [axis for axis, size in ties.sizes.items() if size == root]
    return bool(axes) and all(prober.parts[i].role == "cache" and a == prober.tensors[i].dim() - 2 for i, a in axes)


def _dim(root: str, name: str, found: Span, ties: Ties, *, asked: Mapping[Axis, Ask], must: frozenset[Axis]) -> Dim:
    axes = [axis for axis, size in ties.sizes.items() if root in size_text.names(size)]
    asks = [asked[axis] for axis in axes if axis in asked and ties.sizes[axis] == root]
    wanted = bool([a for a in axes if a in asked or a in must])
    dim = Dim(name, found.low, found.high, ties.steps.get(root, 1), found.why, wanted)
    low = next((a.low for a in asks if a.low is not None), None)
    high = next((a.high for a in asks if a.high is not None), None)
    if low is not None or high is not None:
        return within(dim, low, high)
    return dim


def within(dim: Dim, low: int | None, high: int | None) -> Dim:
    """Return the dim with the range that the user asked for; what the model itself refuses stays out and is told elsewhere."""
    start = dim.low if low is None else max(low, dim.low)
    end = dim.high if high is None else high if dim.high is None else min(high, dim.high)
    return replace(dim, low=start, high=end, why=dim.why if end == dim.high else "", asked=True)


def _renamed(size: Size, called: Mapping[str, str]) -> Size:
    if isinstance(size, int):
        return size
    return re.sub(r"\br\d+\b", lambda m: called[m[0]], size)


def _reason(prober: Prober, ties: Ties, axis: Axis) -> str:
    """Return what the model said when this axis moved, alone or beside those that do move."""
    i, a = axis
    refused = [(s, r) for s, r in prober.answers.items() if r is not None]
    said = next((r for s, r in refused if _moves_beside(s, axis, prober)), None)
    said = said or next((r for s, r in refused if _moves_beside(s, axis, prober, ties.sizes.keys())), None)
    if said is None and prober.spent:
        return "not tried: the search for sizes that move had run out of calls"
    return why_fixed(said, ties.base[i][a])


def _moves_beside(shapes: Shapes, axis: Axis, prober: Prober, others: Collection[Axis] = ()) -> bool:
    """Whether an axis differs from the example, and besides it only some others, and sizes of one that are never kept."""
    example = tuple(tuple(t.shape) for t in prober.tensors)
    different = [(i, a) for i, s in enumerate(shapes) for a, n in enumerate(s) if n != example[i][a]]
    return axis in different and all(d == axis or d in others or example[d[0]][d[1]] <= 1 for d in different)
