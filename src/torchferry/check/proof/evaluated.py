"""Evaluated: a file that no runtime opens is asked of the standard's own evaluator.

claim         the mended file computes what the nodes of the file, as they are written, mean
precondition  onnx's reference evaluator, which takes types and stamps more lightly than a runtime, runs the file as it came
proof         it gives what the mended file gives in the runtime, on the user's feeds and on values drawn anew
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchferry.check.proof.mending import PATIENCE, Mending
from torchferry.records import Fault

# The evaluator sums in another order than a runtime does, and a node without a kernel may have been computed in float32.
RELATIVE = {8: 1e-5, 4: 1e-4, 2: 1e-2}


def differs(mending: Mending) -> str | None:
    """Return how the two differ, or nothing where they agree; None where the evaluator cannot run the file."""
    path, compared = mending.written(), 0
    for feed in mending.asked():
        limit, mending.worker.time_limit = mending.worker.time_limit, min(PATIENCE, mending.worker.time_limit)
        try:
            wanted = mending.worker.evaluate(path, feed)
        finally:
            mending.worker.time_limit = limit
        given = mending.outputs(feed)
        if isinstance(wanted, Fault) or given is None:
            if compared == 0 or given is not None:
                return None  # values of our own may be outside what the file is for; the user's are not
            continue
        for index, (a, b) in enumerate(zip(wanted, given, strict=False)):
            if not alike(a, b):
                return f"the standard's own evaluator gives something else for output {index} of the file as it came"
        compared += 1
    return "" if compared else None


def alike(wanted: Any, given: Any) -> bool:
    """Say whether two values are the same numbers, up to the rounding of the coarser type; their types may differ."""
    if isinstance(wanted, list | tuple) and isinstance(given, list | tuple):
        return len(wanted) == len(given) and all(alike(a, b) for a, b in zip(wanted, given, strict=True))
    first, second = np.asarray(wanted), np.asarray(given)
    if first.shape != second.shape:
        return False
    if "O" in (first.dtype.kind, second.dtype.kind) or first.dtype.kind in "US":
        return bool(np.array_equal(first.astype(str), second.astype(str)))
    sizes = [x.dtype.itemsize for x in (first, second) if x.dtype.kind in "fV"]
    a, b = first.astype(np.complex128), second.astype(np.complex128)
    if not sizes:
        return bool(np.array_equal(a, b))
    finite = np.abs(a[np.isfinite(a)])
    allowed = RELATIVE.get(min(sizes), 1e-4) * float(finite.max() if finite.size else 0)
    return bool(np.allclose(a, b, rtol=0, atol=max(allowed, 1e-30), equal_nan=True))
