"""Bias: what the trials have in common, each of them within what rounding may do.

Rounding errs to either side. A variance over n - 1 instead of n, or an epsilon that is another, makes every number of every
trial too small by the same share, and in 16 bits that may be less than rounding does to a single number. Over all trials it
is far more than rounding leaves on average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchferry import eager
from torchferry.records.findings import OutputBiased
from torchferry.records.kinds_of_values import ORDINARY
from torchferry.verify.arrays import PRECISION, Array, is_float, wide
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.run.double_shadow import in_float64

ENOUGH_TRIALS, ENOUGH_NUMBERS = 6, 16  # of trials, and of numbers in each
SURE = 6.0  # standard errors: what the trials have in common is no chance
# units in the last place: a factor that is stored in that type, and not multiplied in exactly, leaves half of one
UNITS = {"float64": 4.0, "float32": 4.0, "float16": 1.0, "bfloat16": 1.0}
ASKED = 4  # trials in which float64 is asked who is right


def biased(bench: Bench, judged: Sequence[Judged]) -> tuple[OutputBiased, ...]:
    """Return the outputs that the file gives too large or too small throughout, as a float64 run of eager shows."""
    ordinary = [j for j in judged if j.trial.values in ORDINARY and j.trial.outcome == "agree" and j.plan.level == "all"]
    if bench.traits.exact or eager.weight_bytes(bench.sides.bound.module) > eager.WHOLE_COPY_BYTES:
        return ()
    found = []
    for n, name in enumerate(bench.sides.bound.outputs):
        alike = [j for j in ordinary if _many(j.want[n])]
        if bench.traits.random[n] or len(alike) < ENOUGH_TRIALS:
            continue
        gains = np.array([_gain(j.got[n], j.want[n]) for j in alike])
        coarsest = max((alike[0].want[n].dtype.name, bench.traits.coarsest), key=lambda dtype: PRECISION[dtype])
        least = UNITS[coarsest] * PRECISION[coarsest]
        common = float(gains.mean())
        if abs(common) > least + SURE * float(gains.std()) / len(gains) ** 0.5:
            found += _shown(bench, alike[:ASKED], n, name, common, least)
    return tuple(found)


def _many(want: Array) -> bool:
    return is_float(want) and want.size >= ENOUGH_NUMBERS and bool(np.isfinite(wide(want)).all()) and bool(want.any())


def _gain(got: Array, want: Array) -> float:
    """Return by which share one array is larger than another: the factor that brings it nearest, less one."""
    want = wide(want)
    scale = np.abs(want).max()
    return float(((wide(got) - want) / scale * (want / scale)).sum() / ((want / scale) ** 2).sum())


def _shown(bench: Bench, trials: Sequence[Judged], n: int, name: str, common: float, least: float) -> list[OutputBiased]:
    """Return the finding, if the file is further from float64 in the same direction than eager and rounding together are."""
    own, its = [], []
    for judged in trials:
        truth = in_float64(bench.sides.bound.module, judged.args)
        if truth is None or truth[n].shape != judged.want[n].shape or not _many(truth[n]):
            return []
        own.append(_gain(judged.want[n], truth[n]))
        its.append(_gain(judged.got[n], truth[n]))
    if abs(np.mean(its)) <= least + 2 * abs(np.mean(own)):
        return []
    return [OutputBiased(name, common, len(trials), float(np.mean(own)), float(np.mean(its)))]
