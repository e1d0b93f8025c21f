"""What the trials that agree have compared at all: outputs that were never empty, never still, never lost in what is allowed.

And the inputs: one of which eager takes no values but the example's was not varied, whatever the number of trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from torchferry.records.findings import InputNotVaried, OutputEmpty, OutputLost, OutputStill
from torchferry.records.kinds_of_values import EXTREME
from torchferry.verify.arrays import Array, array, is_float, wide
from torchferry.verify.coverage.ground import COMPARED, Ground
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.run.double_shadow import in_float64

LOST = 0.1  # of an output's own spread: differences as large as that leave little of it
FURTHER = 8.0  # times eager's own distance from a float64 run: what no two right kernels differ by
ASKED = 3  # trials for which a float64 run is made


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """One output in all trials that compare it."""

    name: str
    moves: bool  # whether values of the inputs go into it
    filled: bool  # it had a number in some trial
    varies: bool  # it had two different ones


def compare(ground: Ground) -> Ground:
    """Return the ground with its outputs and inputs counted, and those told of that no trial says anything of."""
    redrawn = [j for j in ground.redrawn if j.trial.outcome in COMPARED]
    compared = [*ground.compared, *redrawn]
    seen = watched(ground.bench, compared, ground.weights.seen.moves)
    ground = ground.count(outputs=len(seen), varied=sum(w.varies or not w.moves for w in seen))
    if ground.failed:
        return ground
    for one in seen:
        if not one.filled:
            ground = ground.finds(OutputEmpty(one.name))
        elif one.moves and not one.varies and ground.weights.tensors and not redrawn:
            ground = ground.finds(OutputStill(one.name, len(compared)))
        elif one.moves and not one.varies:  # it stayed as it is whatever was tried: nobody can tell whether it could move
            ground = ground.lacks([f"output `{one.name}`, which was the same in all trials"])
    for name, far in lost_in_tolerance(ground.bench, ground.agreeing):
        ground = ground.finds(OutputLost(name, far))
    for name, times in unvaried(ground.bench, ground.judged):
        ground = ground.finds(InputNotVaried(name, times))
    return ground


def watched(bench: Bench, compared: Sequence[Judged], moves: Sequence[bool]) -> list[ComparedOutput]:
    """Return, for each output, what was seen of it."""
    found = []
    for n, name in enumerate(bench.sides.bound.outputs):
        seen = [j.want[n].reshape(-1) for j in compared if n < len(j.want) and j.want[n].size]
        first = seen[0][0] if seen else None
        varies = any(bool((values != first).any()) for values in seen)
        found.append(ComparedOutput(name, moves[n] if n < len(moves) else True, bool(seen), varies))
    return found


def lost_in_tolerance(bench: Bench, agreeing: Sequence[Judged]) -> Iterator[tuple[str, float]]:
    """Yield the outputs of which the file gives nothing that is allowed to be seen, and how far off it is, of their spread.

    An output of a millionth agrees with anything where a hundred-thousandth is allowed. It is lost only where a float64 run says
    that eager has it right: of a difference of nearly equal numbers both sides may give rounding errors alone.
    """
    ordinary = [j for j in agreeing if j.plan.values not in EXTREME]
    for n, name in enumerate(bench.sides.bound.outputs):
        pairs = [(wide(j.want[n]), wide(j.got[n])) for j in ordinary if n < len(j.got) and is_float(j.want[n])]
        far, spread = _apart(pairs)
        if spread > 0 and far > LOST * spread and _further(bench, ordinary, n):
            yield name, far / spread


def _apart(pairs: Sequence[tuple[Array, Array]]) -> tuple[float, float]:
    """Return the root mean square of the differences, and of what eager's numbers spread around their mean."""
    if not pairs:
        return 0.0, 0.0
    want, got = (np.concatenate([p[side].reshape(-1) for p in pairs]) for side in (0, 1))
    fine = np.isfinite(want) & np.isfinite(got)
    if not fine.any():
        return 0.0, 0.0
    return float(np.sqrt(np.mean((want[fine] - got[fine]) ** 2))), float(np.std(want[fine]))


def _further(bench: Bench, trials: Sequence[Judged], n: int) -> bool:
    """Return whether the file is much further from a float64 run than eager, in every trial that was asked."""
    told = []
    for judged in [j for j in trials if j.want[n].size][:ASKED]:
        truth = in_float64(bench.sides.bound.module, judged.args)
        if truth is None or truth[n].shape != judged.want[n].shape:
            continue
        own, spread = _apart([(truth[n], wide(judged.want[n]))])[0], float(np.nanstd(truth[n]))
        its = _apart([(truth[n], wide(judged.got[n]))])[0]
        told.append(its > FURTHER * own and its > 0 and (spread == 0 or its > LOST * spread / FURTHER))
    return bool(told) and all(told)


def unvaried(bench: Bench, judged: Sequence[Judged]) -> Iterator[tuple[str, int]]:
    """Yield the inputs of which eager took one value and refused all others, and how often it refused."""
    compared = [j for j in judged if j.trial.outcome in COMPARED]
    refused = [j for j in judged if j.trial.outcome == "eager-refused" and j.args]
    for n, spec in enumerate(bench.sides.bound.signature.inputs):
        taken = _rows([array(j.args[n]) for j in compared])
        others = [j for j in refused if _rows([array(j.args[n])]) - taken]
        if len(taken) == 1 and others and spec.shape:
            yield spec.name, len(others)


def _rows(arrays: Sequence[Array]) -> set[bytes]:
    """Return the different rows, along the last axis, of some arrays; of a vector, its numbers."""
    found: set[bytes] = set()
    for values in arrays:
        width = values.shape[-1] if values.ndim > 1 else 1
        for row in values.reshape(-1, max(1, width))[:1024]:
            found.add(row.tobytes())
    return found
