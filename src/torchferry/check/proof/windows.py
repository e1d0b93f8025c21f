"""Windows: each place of the outputs is given by the file as it came, from as many places of what is fed as it takes.

claim         an output's place sees only what is near it, or only what comes before it
precondition  where the window was cut off, the file's answer does not hang on what stands at the cut: measured
proof         windows of the old size are run in the file as it came, and every place of every output is in one;
              where less is fed than before, what is fed is run with anything behind, and with anything in front
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchferry.check.proof import values
from torchferry.check.proof.moved_size import Drawn, MovedSize
from torchferry.check.proof.runs import close

MOST = 48  # windows that are run


def shown(sides: MovedSize) -> bool:
    """Say whether every place of every output was given by the file as it came."""
    axes = [sides.axis_of(i) for i in range(len(sides.draws[0].known))]
    if any(a is None or a < 0 for a in axes) or abs(sides.size.now - sides.size.was) >= MOST:
        return False
    steps = [_step(sides, i, int(a or 0)) for i, a in enumerate(axes)]
    if any(s is None for s in steps):
        return False
    cover = _covered_by_windows if sides.size.now > sides.size.was else _covered_by_longer
    return all(_all_places(sides, drawn, axes, steps, cover) for drawn in sides.draws)


def _all_places(sides: MovedSize, drawn: Drawn, axes: Any, steps: Any, cover: Any) -> bool:
    covered = [np.zeros(w.shape[a], bool) for w, a in zip(drawn.whole, axes, strict=True)]
    for start in range(abs(sides.size.now - sides.size.was) + 1):
        cover(sides, drawn, start, axes, steps, covered)
    return all(c.all() for c in covered)


def _step(sides: MovedSize, output: int, axis: int) -> int | None:
    """Return how many places of the inputs one of an output stands for; None where that is not a whole number."""
    old, new = sides.draws[0].known[output].shape[axis], sides.draws[0].whole[output].shape[axis]
    step, rest = divmod(sides.size.now - sides.size.was, new - old)
    return step if rest == 0 and step > 0 else None


def _covered_by_windows(sides: MovedSize, drawn: Drawn, start: int, axes: Any, steps: Any, covered: list[np.ndarray]) -> None:
    """Mark the places that a window gives, and that do not hang on what stands where it was cut off."""
    size = sides.size
    window = values.taken(drawn.large, size.axes, range(start, start + size.was))
    given = sides.right(window)
    if given is None:
        return
    cuts = ([0] if start > 0 else []) + ([size.was - 1] if start + size.was < size.now else [])
    others = [sides.right(values.changed(window, size.axes, cut)) for cut in cuts]
    if any(o is None for o in others):
        return
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        if start % step:
            continue
        for place in range(given[i].shape[axis]):
            there = place + start // step
            mine = np.take(given[i], place, axis)
            settled = all(close(np.take(o[i], place, axis), mine) for o in others if o is not None)
            if there < len(covered[i]) and settled and close(np.take(drawn.whole[i], there, axis), mine):
                covered[i][there] = True


def _covered_by_longer(sides: MovedSize, drawn: Drawn, start: int, axes: Any, steps: Any, covered: list[np.ndarray]) -> None:
    """Mark the places that the file gives for what is fed with other things before and behind it, whatever these are."""
    size = sides.size
    rests = [values.resized(values.drawn(drawn.large, seed), size.axes, size.was - size.now) for seed in (7, 8)]
    longer = []
    for rest in rests:
        before = values.taken(rest, size.axes, range(start))
        behind = values.taken(rest, size.axes, range(start, size.was - size.now))
        longer.append(sides.right(values.joined(values.joined(before, drawn.large, size.axes), behind, size.axes)))
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        if start % step or any(given is None for given in longer):
            continue
        for place in range(len(covered[i])):
            mine, there = np.take(drawn.whole[i], place, axis), place + start // step
            if all(given is not None and close(np.take(given[i], there, axis), mine) for given in longer):
                covered[i][place] = True
