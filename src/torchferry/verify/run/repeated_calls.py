"""What the eager module says of itself: whether it draws random numbers, or keeps state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchferry import eager
from torchferry.verify.arrays import Array, array, arrays, is_float, wide


@dataclass(frozen=True, slots=True)
class Character:
    """How the module behaves when called again: which outputs are random, and which change by state."""

    random: tuple[bool, ...]
    stateful: tuple[bool, ...]

    @property
    def plain(self) -> bool:
        """Whether the module is a function of its inputs."""
        return not any(self.random) and not any(self.stateful)


def character(
    module: torch.nn.Module, used: torch.nn.Module, first: Sequence[torch.Tensor], calls: Sequence[tuple[Any, ...]]
) -> Character:
    """Return which outputs differ with another seed, and which differ when a call comes second on one instance.

    `used` is a copy that was called once, with `calls[0]` and seed 0, and gave `first`: where it gives the same again under
    another seed it is plain, and one more call has told so. Several calls are looked at, as state that starts at zero and
    adds up inputs does not show with inputs of zero.
    """
    plain = Character((False,) * len(first), (False,) * len(first))
    again = arrays(eager.call(used, calls[0], seed=1))
    suspicious = not all(same(array(a), b) for a, b in zip(first, again, strict=True))
    for args in calls[1:]:
        twin = eager.fresh(module)
        one, two = arrays(eager.call(twin, args, seed=0)), arrays(eager.call(twin, args, seed=1))
        suspicious = suspicious or not all(same(a, b) for a, b in zip(one, two, strict=True))
    return _character(module, calls) if suspicious else plain


def _character(module: torch.nn.Module, calls: Sequence[tuple[Any, ...]]) -> Character:
    random: list[bool] = []
    stateful: list[bool] = []
    for args in calls:
        first = arrays(eager.call(eager.fresh(module), args, seed=0))
        other = arrays(eager.call(eager.fresh(module), args, seed=1))
        twin = eager.fresh(module)
        eager.call(twin, args, seed=0)
        second = arrays(eager.call(twin, args, seed=0))
        drawn = [not same(a, b) for a, b in zip(first, other, strict=True)]
        changed = [not same(a, b) for a, b in zip(first, second, strict=True)]
        random = [r or d for r, d in zip(random or drawn, drawn, strict=True)]
        stateful = [s or c for s, c in zip(stateful or changed, changed, strict=True)]
    return Character(tuple(random), tuple(s and not r for s, r in zip(stateful, random, strict=True)))


def same(one: Array, two: Array) -> bool:
    """Return whether two arrays are equal to the last bit but for the noise of threads."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if not is_float(one):
        return bool((one == two).all())
    return bool(np.allclose(wide(one), wide(two), rtol=1e-5, atol=1e-6, equal_nan=True))
