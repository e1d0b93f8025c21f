"""Whether a file is right but for its names: two outputs, or two inputs of one kind, called the wrong way round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

from torchferry.records import Fault
from torchferry.records.kinds_of_values import ORDINARY
from torchferry.verify.judge.trial import Bench, Judged, differences

MOST_PERMUTED = 4  # outputs; beyond that only pairs are tried


@dataclass(frozen=True, slots=True)
class Misnamed:
    """Which names stand at the wrong values: {name in the file: name in the model}."""

    what: str  # "outputs" or "inputs"
    names: dict[str, str]


def misnamed(bench: Bench, failing: Judged) -> Misnamed | None:
    """Return the names to exchange for the file to be right on a failing trial, or None where that does not help."""
    if failing.fault is not None or len(failing.want) != len(failing.got):
        return None
    return _outputs(bench, failing) or _inputs(bench, failing)


def _outputs(bench: Bench, failing: Judged) -> Misnamed | None:
    names = bench.sides.bound.outputs
    for order in _orders(len(failing.got)):
        got = [failing.got[i] for i in order]
        fit = all(w.shape == g.shape and w.dtype == g.dtype for w, g in zip(failing.want, got, strict=True))
        if fit and not differences(bench, failing.want, got)[0]:
            return Misnamed("outputs", {names[i]: names[n] for n, i in enumerate(order) if i != n})
    return None


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    plain = tuple(range(count))
    if count <= MOST_PERMUTED:
        yield from (p for p in permutations(plain) if p != plain)
        return
    for one, two in combinations(plain, 2):
        yield tuple(two if n == one else one if n == two else n for n in plain)


def _inputs(bench: Bench, failing: Judged) -> Misnamed | None:
    specs = bench.sides.bound.signature.inputs
    for one, two in combinations(range(len(specs)), 2):
        a, b = failing.args[one], failing.args[two]
        if a.shape != b.shape or a.dtype != b.dtype or bool((a == b).all()):
            continue
        args = list(failing.args)
        args[one], args[two] = b, a
        got = bench.sides.run(tuple(args))
        if not isinstance(got, Fault) and not differences(bench, failing.want, got)[0]:
            return Misnamed("inputs", {specs[one].name: specs[two].name, specs[two].name: specs[one].name})
    return None


def plain(failing: Judged) -> bool:
    """Return whether a trial's values are ordinary: with all equal ones any two outputs look exchanged."""
    return failing.trial.values in ORDINARY
