"""What is said of the trials: how many agree, how large the worst difference is, how much is allowed and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from torchferry.records import FAILING, Coverage, Outcome, Tolerance, Trial
from torchferry.report.words import plural, share

MOST_KINDS = 5  # ways of filling the inputs that are named in the closing block; the reports list every trial

NOT_COUNTED: Mapping[Outcome, str] = {
    "eager-refused": "refused by the model itself",
    "ill-conditioned": "that differ by rounding alone",
    "padding-only": "differing only under padding",
    "beyond-range": "differing at values beyond the model's range",
    "tie-order": "differing only in the order of equal values",
    "too-large": "too large for the memory that a trial may take",
    "undetermined": "differing only where an operator has no single answer",
    "eager-cut-off": "where torch's own kernels cut sums off on this processor, and the file does not",
    "random": "random by design, so compared by shape and dtype",
    "file-refused": "refused by the file",
    "differ": "different",
}


def agreement(trials: tuple[Trial, ...]) -> str:
    """Return `41 of 41 trials agree, at 12 sets of sizes; values: example, random (9), zeros; 2 refused by the model itself`."""
    outcomes = Counter[Outcome](t.outcome for t in trials)
    counted = [t for t in trials if t.outcome == "agree" or t.outcome in FAILING]
    agree = [t for t in trials if t.outcome == "agree"]
    sizes = len({tuple(sorted(t.sizes.items())) for t in agree})
    said = f"{len(agree)} of {plural(len(counted), 'trial')} agree" + (f", at {sizes} sets of sizes" if sizes > 1 else "")
    rest = [f"{outcomes[o]} {words}" for o, words in NOT_COUNTED.items() if outcomes[o]]
    return "; ".join([*([said] if counted else []), *([f"values: {_kinds(agree)}"] if agree else []), *rest])


def _kinds(trials: list[Trial]) -> str:
    """Return the ways in which the inputs were filled, and how often, the commonest first."""
    values = Counter(_kind(t.values) for t in trials).most_common()
    named = [f"{name} ({n})" if n > 1 else name for name, n in values[:MOST_KINDS]]
    more = len(values) - MOST_KINDS
    return ", ".join(named) + (f" and {plural(more, 'other kind')}" if more > 0 else "")


def _kind(values: str) -> str:
    """Return a way to fill inputs without its numbers and its column: `near` for `column-2 near 0.3`."""
    return next((word for word in values.split() if not word.startswith("column-")), values)


def shown(coverage: Coverage) -> str:
    """Return `212 of 212 weights equal, 14 of 14 outputs vary, 41 of 44 sides taken, 96% of 180 mutants noticed`."""
    parts = []
    if coverage.weights:
        told = [
            (coverage.equal, "equal"),
            (coverage.computed, "computed from the model's"),
            (coverage.reached, "noticed if changed"),
        ]
        most, *others = [f"{n} {how}" for n, how in told if n] or ["0 equal"]
        number, _, how = most.partition(" ")
        parts += [f"{number} of {plural(coverage.weights, 'weight')} {how}", *others]
    if coverage.outputs:
        nodes = f" and {coverage.moved} of {plural(coverage.values, 'node')}" if coverage.values else ""
        parts.append(f"{coverage.varied} of {plural(coverage.outputs, 'output')}{nodes} seen to vary")
    if coverage.sides:
        parts.append(f"{coverage.taken} of {plural(coverage.sides, 'side')} taken")
    if coverage.mutants:
        parts.append(f"{coverage.noticed / coverage.mutants:.0%} of {plural(coverage.mutants, 'mutant')} noticed")
    if coverage.redrawn:
        parts.append(f"{plural(coverage.redrawn, 'trial')} with redrawn weights")
    return ", ".join(parts)


def worst(trials: tuple[Trial, ...]) -> str:
    """Return the largest difference, against what was allowed, and the trial that showed it."""
    # where the model itself is not finite, a trial that agrees as far as anything can has no finite measure
    counted = [t for t in trials if t.outcome == "differ" or (t.outcome == "agree" and math.isfinite(t.worst))]
    if not counted:
        return ""
    far = max(counted, key=lambda t: t.worst)
    if far.worst == 0 and far.max_abs == 0 and far.outcome == "agree":
        return "none: equal to the last bit"
    if far.outcome == "differ" and far.differences:
        return f"`{far.differences[0].output}` {far.differences[0].words} (trial {far.name})"
    return f"{far.max_abs:.2g}, {share(far.worst)} of what is allowed (trial {far.name})"


def allowed(tolerance: Tolerance) -> str:
    """Return how much may differ, and why that much."""
    first = f"{tolerance.atol:.2g}" if tolerance.atol else f"{tolerance.share:.2g} of an output's spread"
    return f"{first} + {tolerance.rtol:.2g} of the value; {tolerance.because}"
