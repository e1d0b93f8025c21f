"""Which axes move, and which move together: axes alone, groups of equal size, sums and multiples, steps of more than one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import sympy

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.hints import Hints
from torchferry.inputs.sizes.probing import Axis, Prober, Shapes, moved
from torchferry.inputs.sizes.relations import Made, as_sums, connected, made_of, spelled
from torchferry.inputs.sizes.search_state import Ties

Unit = tuple[Axis, ...]  # axes that are tried as one from the start: the layers of a cache
SIDE = ("mask", "types", "positions")  # inputs that go beside another one and share its sizes
MOST_SUBSETS = 60


class Search:
    """Finds the ties of one model."""

    def __init__(self, prober: Prober, base: Shapes, units: Sequence[Unit], hints: Callable[[], Hints]) -> None:
        self.prober = prober
        self.ties = Ties(base)
        self.pending = list(units)
        self._hints = hints

    def run(self) -> Ties:
        """Return what moves, after trying the likeliest first."""
        ways = (
            self._mask_over_past,
            self._masks,
            self._alone,
            self._same_axis,
            self._joining,
            self._hinted,
            self._levels,
            self._equal_sizes,
            self._sums,
            self._steps,
            self._growing,
            self._shrinking,
        )
        for stage in ways:
            if self.pending:
                stage()
        self._jointly()
        return self.ties

    # --- trying ----------------------------------------------------------------------------------

    def _size(self, unit: Unit) -> int:
        i, a = unit[0]
        return self.ties.base[i][a]

    def _taken(self) -> set[int]:
        return {n for shape in self.ties.base for n in shape}

    def _around(self, size: int, step: int = 1) -> list[int]:
        """Return a larger and a smaller size that no other axis has, and not 1, which broadcasts."""
        taken = self._taken()
        up = next(n for n in itertools.count(size + step, step) if n not in taken)
        if size == 1:
            return [up, next(n for n in itertools.count(up + step, step) if n not in taken)]
        down = next((n for n in range(size - step, 1, -step) if n not in taken), None)
        if down is None:  # a size of two: one is all there is below, and only what also takes that is not a mere "at least"
            return [up, next(n for n in itertools.count(up + step, step) if n not in taken), 1]
        return [up, down]

    def _steady(self, units: Iterable[Unit]) -> bool:
        """Whether these units, of equal size, can move together while all else stays."""
        units = list(units)
        axes = [axis for unit in units for axis in unit]
        return all(self.prober.runs(moved(self.ties.base, dict.fromkeys(axes, n))) for n in self._around(self._size(units[0])))

    def _settle(self, units: Iterable[Unit]) -> str:
        units = list(units)
        self.pending = [u for u in self.pending if u not in units]
        return self.ties.add([axis for unit in units for axis in unit], self._size(units[0]))

    # --- the kinds of tie, in the order in which they are tried -------------------------------------

    def _role(self, unit: Unit) -> str:
        return self.prober.parts[unit[0][0]].role

    def _last(self, unit: Unit) -> bool:
        i, a = unit[0]
        return a == len(self.ties.base[i]) - 1

    def _mask_over_past(self) -> None:
        """Tie a mask to what it is for where models are lenient about its length: the cached tokens and the new ones."""
        past = [u for u in self.pending if self._role(u) == "cache" and u[0][1] == len(self.ties.base[u[0][0]]) - 2]
        new = [u for u in self.pending if self._role(u) in ("ids", "types", "positions") and self._last(u)]
        masks = [u for u in self.pending if self._role(u) == "mask" and self._last(u)]
        for p, s in itertools.product(past, new):
            if p not in self.pending or s not in self.pending:
                continue
            total = [m for m in masks if m in self.pending and self._size(m) == self._size(p) + self._size(s)]
            if total:
                a, b = sympy.symbols("a0 a1")
                beside = {u: b for u in new if u in self.pending and self._size(u) == self._size(s)}
                cached = {u: a for u in past if u in self.pending and self._size(u) == self._size(p)}
                self._try_expressions({**beside, **cached, **dict.fromkeys(total, a + b)}, {a: self._size(p), b: self._size(s)})

    def _masks(self) -> None:
        """Tie a mask to the input of its sizes, though the model may take others for it: nobody varies them alone."""
        for unit in list(self.pending):
            if unit not in self.pending or self._role(unit) not in SIDE:
                continue
            group = [u for u in self._equal(unit) if u[0][1] == unit[0][1]]
            if not any(self._role(u) not in SIDE for u in group) or not self._steady(group):
                continue
            for other in list(group):
                rest = [u for u in group if u != other]
                if self._role(other) not in SIDE and any(self._role(u) not in SIDE for u in rest) and self._steady(rest):
                    group = rest
            self._settle(group)

    def _alone(self) -> None:
        for unit in list(self.pending):
            if not self._steady([unit]):
                continue
            if len(unit) > 1 and self._steady([unit[:1]]):  # a list of things that have sizes of their own
                self.pending.remove(unit)
                for axis in unit:
                    self.ties.add([axis], self._size(unit))
            else:
                self._settle([unit])

    def _same_axis(self) -> None:
        for unit in list(self.pending):
            if unit in self.pending:
                like = [u for u in self._equal(unit) if u[0][1] == unit[0][1]]
                if len(like) > 1 and self._steady(like):
                    self._settle(self._smallest(unit, like))

    def _joining(self) -> None:
        """Tie an axis that does not move alone to one that does, where both move together: a model may be lenient to one side."""
        for unit in list(self.pending):
            for root, size in list(self.ties.roots.items()):
                axes = [axis for axis, s in self.ties.sizes.items() if s == root]
                alike = size == self._size(unit) and any(a == unit[0][1] for _, a in axes)
                if alike and unit in self.pending and self._steady([unit, tuple(axes)]):
                    self.pending.remove(unit)
                    self.ties.sizes.update(dict.fromkeys(unit, root))

    def _levels(self) -> None:
        """Tie the levels of a pyramid: along one axis, sizes that are multiples of the smallest move as such."""
        for axis in sorted({unit[0][1] for unit in self.pending}):
            along = [u for u in self.pending if u[0][1] == axis]
            least = min(map(self._size, along), default=1)
            levels = [u for u in along if self._size(u) % least == 0]
            if least > 1 and len({self._size(u) for u in levels}) > 1:
                root = sympy.Symbol("a0")
                self._try_expressions({u: self._size(u) // least * root for u in levels}, {root: least})

    def _equal_sizes(self) -> None:
        for unit in list(self.pending):
            if unit not in self.pending:
                continue
            equal = self._equal(unit)
            if len(equal) < 2:
                continue
            if self._steady(equal):
                self._settle(self._smallest(unit, equal))
            elif (found := self._subset(unit, equal)) is not None:
                self._settle(found)

    def _equal(self, unit: Unit) -> list[Unit]:
        return [u for u in self.pending if self._size(u) == self._size(unit)]

    def _smallest(self, unit: Unit, group: list[Unit]) -> list[Unit]:
        """Return the smallest part of a movable group around a unit that still moves: groups of equal size may be two ties."""
        if len(group) > 3 and (found := self._subset(unit, group)) is not None:
            return found
        for other in list(group):
            rest = [u for u in group if u != other]
            if other != unit and rest and self._steady(rest):
                group = rest
        return group

    def _subset(self, unit: Unit, group: list[Unit]) -> list[Unit] | None:
        others = [u for u in group if u != unit]
        ordered = sorted(others, key=lambda u: u[0][1] != unit[0][1])  # the same axis of other inputs first
        subsets = itertools.chain.from_iterable(itertools.combinations(ordered, k) for k in range(1, len(others)))
        return next(([unit, *s] for s in itertools.islice(subsets, MOST_SUBSETS) if self._steady([unit, *s])), None)

    def _hinted(self) -> None:
        """Take the ties that the symbolic run suggests, where the eager model agrees; those within one input are few to try."""
        if len({unit[0][0] for unit in self.pending}) < 2:
            return
        hints = self._hints()
        first = {unit[0]: unit for unit in self.pending}
        known = {axis: hints[axis] for axis in first if axis in hints and hints[axis].free_symbols}
        for together in connected(known.values()):
            members = as_sums({axis: e for axis, e in known.items() if e.free_symbols & together})
            symbols = set().union(*(e.free_symbols for e in members.values()))
            roots = {s: next((self._size(first[a]) for a, e in members.items() if e == s), None) for s in symbols}
            if any(n is None for n in roots.values()):
                continue
            self._try_expressions({first[a]: e for a, e in members.items()}, {s: n for s, n in roots.items() if n is not None})

    def _try_expressions(self, members: dict[Unit, sympy.Expr], roots: dict[sympy.Symbol, int]) -> bool:
        """Take a set of axes as expressions over new roots if the model runs with each root moved."""
        names = {s: f"r{len(self.ties.roots) + k}" for k, s in enumerate(sorted(roots, key=str))}
        try:
            texts = {u: spelled(e, names) for u, e in members.items()}
        except ValueError:
            return False
        base = {names[s]: n for s, n in roots.items()}
        if any(size_text.value(t, base) != self._size(u) for u, t in texts.items()):
            return False
        for root, size in base.items():
            for n in self._around(size):
                sizes = {**base, root: n}
                changes = {axis: size_text.value(t, sizes) for u, t in texts.items() for axis in u}
                if min(changes.values()) < 1 or not self.prober.runs(moved(self.ties.base, changes)):
                    return False
        self.ties.roots.update(base)
        self.ties.sizes.update({axis: t for u, t in texts.items() for axis in u})
        self.pending = [u for u in self.pending if u not in members]
        return True

    def _sums(self) -> None:
        """Find sizes that are the sum of others, or a multiple of another: they move while the others do."""
        groups = [
            [u for u in self.pending if self._size(u) == n] for n in sorted({self._size(u) for u in self.pending}, reverse=True)
        ]
        for total in groups:
            if any(u not in self.pending for u in total):
                continue
            addends = [
                g
                for g in groups
                if g is not total and self._size(g[0]) < self._size(total[0]) and all(u in self.pending for u in g)
            ]
            chosen = itertools.chain.from_iterable(itertools.combinations(addends, n) for n in (1, 2, 3))
            ways = [(way, some) for some in chosen for way in made_of(self._size(total[0]), [self._size(g[0]) for g in some])]
            ways.sort(key=lambda found: found[0].strange)
            next((None for way, some in ways if self._try_made(way, total, some)), None)

    def _try_made(self, way: Made, total: list[Unit], groups: Sequence[list[Unit]]) -> bool:
        members = {unit: part for part, group in zip(way.parts, groups, strict=True) for unit in group}
        roots = {part: self._size(group[0]) for part, group in zip(way.parts, groups, strict=True)}
        return self._try_expressions({**members, **dict.fromkeys(total, way.whole)}, roots)

    def _steps(self) -> None:
        """Find sizes that move only in steps: multiples of a window, an even number."""
        for unit in list(self.pending):
            if unit not in self.pending or self._size(unit) < 2:
                continue
            for group in ([unit], [u for u in self._equal(unit) if u[0][1] == unit[0][1]], self._equal(unit)):
                step = self._step(group)
                if step is not None:
                    self.ties.steps[self._settle(group)] = step
                    break

    def _step(self, group: list[Unit]) -> int | None:
        size = self._size(group[0])
        axes = [axis for unit in group for axis in unit]

        def runs(n: int) -> bool:
            return self.prober.runs(moved(self.ties.base, dict.fromkeys(axes, n)))

        if not (runs(2 * size) and runs(3 * size)):
            return None
        divisors = [d for d in range(2, size) if size % d == 0]
        return next((d for d in divisors if runs(size + d) and (size - d < 2 or runs(size - d))), size)

    def _growing(self) -> None:
        """Find sizes of two that only grow."""
        self._one_way(lambda n: n == 2, (1, 2), None)

    def _shrinking(self) -> None:
        """Find sizes that are at their largest in the example."""
        self._one_way(lambda n: n >= 4, (-1, -2), self.ties.ends)

    def _one_way(self, eligible: Callable[[int], bool], steps: tuple[int, ...], ends: dict[str, int] | None) -> None:
        def runs(group: list[Unit]) -> bool:
            axes, size = [axis for u in group for axis in u], self._size(group[0])
            return all(self.prober.runs(moved(self.ties.base, dict.fromkeys(axes, size + k))) for k in steps)

        for unit in list(self.pending):
            if unit not in self.pending or not eligible(self._size(unit)):
                continue
            group = next((g for g in ([unit], [u for u in self._equal(unit) if u[0][1] == unit[0][1]]) if runs(g)), None)
            if group is not None:
                root = self._settle(group)
                if ends is not None:
                    ends[root] = self._size(unit)

    # --- all at once ---------------------------------------------------------------------------------

    def _jointly(self) -> None:
        """Keep only what also moves together with everything else: an axis may move alone thanks to broadcasting."""
        chosen: dict[str, int] = {}
        first = {n for (_, a), s in self.ties.sizes.items() if a == 0 for n in size_text.names(s)}
        for root in sorted(self.ties.roots, key=lambda r: r not in first):  # where two exclude each other, the batch is meant
            free = self._distinct(root, chosen)
            if free is not None and self.prober.runs(self.ties.shapes(**chosen, **{root: free})):
                chosen[root] = free
            elif free is not None and (twin := self._twin(root, chosen)) is not None:
                self.ties.merge(root, twin)
            elif free is not None:
                self.ties.freeze(root)

    def _distinct(self, root: str, chosen: dict[str, int]) -> int | None:
        size, step = self.ties.roots[root], self.ties.steps.get(root, 1)
        taken = {*chosen.values(), *self._taken()}
        if root in self.ties.ends:
            return next((n for n in range(size - step, 1, -step) if n not in taken), None)
        return next(n for n in itertools.count(size + step, step) if n not in taken)

    def _twin(self, root: str, chosen: dict[str, int]) -> str | None:
        """Return another root with which this one moves, when the two must be equal."""
        for other, size in chosen.items():
            if self.ties.roots[other] == self.ties.roots[root] and self.prober.runs(self.ties.shapes(**chosen, **{root: size})):
                return other
        return None
