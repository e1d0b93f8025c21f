"""Conditions on sizes, as people write them: shorter, and of the same meaning."""

from __future__ import annotations

import math
from itertools import product

import pytest

from torchferry.guards import holds, symbols, words

TOLD = {
    "Eq(Mod(h, 4), 0)": "h % 4 == 0",
    "8 < n": "n > 8",
    "Eq(1, n)": "n == 1",
    "Ne(n + -1, 3)": "n - 1 != 3",
    "32 * Max(1, floor((width + (4 + -1 * Mod(width, 4))) / 32)) > 64": "32 * max(1, (width + 4 - width % 4) // 32) > 64",
    "-1 * n + m > 0": "m - n > 0",
    "1 * n >= 2 * (3 + -1 * m)": "n >= 2 * (3 - m)",
    "4 + (n - (2 + m)) + -3 > 0": "n - m - 1 > 0",
    "-1 * n < -3": "-n < -3",
    "And(n > 3, Or(m < 2, Not(Eq(n, m))))": "n > 3 and (m < 2 or not n == m)",
    "Eq(n + -1 * n, 0)": "n - n == 0",
    "ceiling(n / 2) > Min(m, 3)": "ceil(n / 2) > min(m, 3)",
    "2 <= n <= 1024": "2 <= n <= 1024",
    "floor(sqrt(n)) > 3 - -2": "floor(sqrt(n)) > 5",
}


@pytest.mark.parametrize("text", TOLD)
def test_a_condition_is_told_as_people_write_it(text: str) -> None:
    assert words(text) == TOLD[text]


@pytest.mark.parametrize("text", TOLD)
def test_what_is_told_means_the_same_at_every_size(text: str) -> None:
    names = sorted(symbols(text))
    known = {"max": max, "min": min, "ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt}
    for point in product(range(1, 40), repeat=len(names)):
        sizes = dict(zip(names, point, strict=True))
        assert bool(eval(words(text), known, dict(sizes))) == holds(text, sizes), sizes
