"""A strip of dots, one for each trial: how much of the allowed difference it used, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchferry.records import FAILING
from torchferry.report.view import Run
from torchferry.report.words import share

WIDTH, HEIGHT, LEFT, RIGHT, FLOOR = 860, 74, 8, 8, 40
LOWEST, HIGHEST = -4, 4  # powers of ten of the allowed difference; smaller and larger ones stand at the edges


def strip(runs: Sequence[Run]) -> str:
    """Return an SVG of the trials that count, their texts escaped before, or nothing when there are none."""
    counted = [r for r in runs if r.outcome in FAILING or (r.outcome == "agree" and math.isfinite(r.worst))]
    if not counted:
        return ""
    high = HIGHEST if any(_power(r) > 1 for r in counted) else 1
    ticks = "".join(_tick(power, high) for power in range(LOWEST, high + 1) if power != 0)
    dots = "".join(_dot(run, high, number) for number, run in enumerate(counted))
    limit = _x(0, high)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_told(counted)}">'
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{FLOOR}" y2="{FLOOR}"/>{ticks}'
        f'<line class="limit" x1="{limit:.0f}" x2="{limit:.0f}" y1="6" y2="{FLOOR + 6}"/>'
        f'<text x="{limit:.0f}" y="{FLOOR + 22}" text-anchor="middle">what is allowed</text>{dots}</svg>'
    )


def _told(runs: Sequence[Run]) -> str:
    worst = max(runs, key=_power)
    return f"{len(runs)} trials; the worst used {share(10 ** _power(worst))} of the allowed difference"


def _power(run: Run) -> float:
    """Return where a trial stands on the axis, as a power of ten; refusals have no number and stand at the far end."""
    if run.outcome == "file-refused" or math.isnan(run.worst):
        return HIGHEST
    return min(HIGHEST, max(LOWEST, math.log10(run.worst))) if run.worst > 0 else LOWEST


def _x(power: float, high: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (power - LOWEST) / (high - LOWEST)


def _tick(power: int, high: int) -> str:
    x = _x(power, high)
    label = {-4: "equal", -3: "0.1%", -2: "1%", -1: "10%", 1: "10 times", 2: "100 times", 3: "1000 times", 4: "more"}[power]
    anchor = "start" if power == LOWEST else "end" if power == high else "middle"
    return f'<text x="{x:.0f}" y="{FLOOR + 22}" text-anchor="{anchor}">{label}</text>'


def _dot(run: Run, high: int, number: int) -> str:
    role = "agree" if run.outcome == "agree" else "differ"
    rise = 6 + 11 * (number * 0.618 % 1)  # spread upwards, so that equal ones do not hide each other
    told = f"{run.name}: {run.words or share(run.worst) + ' of what is allowed'}"
    return (
        f'<circle class="{role}" cx="{_x(_power(run), high):.1f}" cy="{FLOOR - rise:.1f}" r="4.5"><title>{told}</title></circle>'
    )
