"""Attention that has nothing to look at: which of eager's numbers hang on it.

Where a mask hides all keys from a query, torch's attention gives zeros, and other runtimes a mean of everything, or NaN. That
is right for a padded query, which nobody asks. Which numbers are made of such rows is seen by running eager with others in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.verify.arrays import Array, arrays
from torchferry.verify.run.eager_trace import op_name

RUNS = 4  # with other shares; one number may be the same in a few of them
SOFTMAX = "_safe_softmax"  # torch's own in the plain steps of attention: zeros for a row of nothing but minus infinity


def with_blind_rows_moved(module: torch.nn.Module, args: tuple[Any, ...]) -> list[list[Array]]:
    """Return eager's outputs, then those with other shares where attention has nothing to look at; [] without such rows."""
    found = []
    try:
        with sdpa_kernel(SDPBackend.MATH):
            found.append(arrays(eager.call(eager.fresh(module), args)))
            for seed in range(RUNS):
                with _Moved(seed) as moved:
                    found.append(arrays(eager.call(eager.fresh(module), args)))
                if not moved.rows:
                    return []
    except Exception:  # torch.cond and its like do not bear being watched
        return []
    return found


class _Moved(Watching):
    """While it is on, attention that may look at nothing looks at everything, by shares drawn at random."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rows = 0
        self._generator = torch.Generator().manual_seed(seed)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        if op_name(func) != SOFTMAX:
            return out
        blind = (args[0] == -np.inf).all(args[1], keepdim=True)
        self.rows += int(blind.sum())
        shares = torch.rand(out.shape, generator=self._generator).softmax(args[1])
        return torch.where(blind, shares.to(out.dtype), out)
