"""How much two correct implementations may differ, and why: dtype, the longest sum, how many follow each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchferry.records import Tolerance
from torchferry.verify.run.eager_trace import Note

# torch.testing.assert_close's defaults: what one op may differ by
_OP_LEVEL = {"float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-4), "bfloat16": (1.6e-2, 1e-3)}
# however deep the model is, more than this is never called rounding without asking a float64 run
_MOST = {"float64": (1e-6, 1e-6), "float32": (1e-3, 1e-4), "float16": (1e-2, 2e-3), "bfloat16": (5e-2, 2e-2)}
ORDERS = 4.0  # two kernels add up in different orders, each with its own error
_COARSE_FIRST = ("bfloat16", "float16", "float32", "float64")


def derive(notes: Sequence[Note], computed_in: str | None = None) -> Tolerance:
    """Return the tolerance for a model from what eager was seen to do; `computed_in` is what a repair lowered it to."""
    used = {d for n in notes for d in n.dtypes} | ({computed_in} if computed_in else set())
    dtype = next((d for d in _COARSE_FIRST if d in used), "float32")
    terms = max((n.terms for n in notes), default=1)
    depth = sum(n.terms > 1 for n in notes)
    # rounding errors of independent signs grow with the square root of their number
    growth = math.sqrt(max(terms, 1)) * math.sqrt(max(depth, 1)) * (ORDERS if depth else 1)
    rtol, atol = (min(o * growth, most) for o, most in zip(_OP_LEVEL[dtype], _MOST[dtype], strict=True))
    return Tolerance(rtol, atol, _words(dtype, terms, depth))


def _words(dtype: str, terms: int, depth: int) -> str:
    if depth == 0:
        return f"{dtype}, no sums: torch.testing's own allowance"
    return f"{dtype}, up to {terms} rounding errors in a number, {depth} such step{'s' if depth > 1 else ''} in a row"
