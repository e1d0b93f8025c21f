"""A mended file beside the one it was made from: where both run, both must give the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.check.proof import mends
from torchferry.check.proof.mending import Mending
from torchferry.check.running.run import Opened
from torchferry.check.running.trace import Feed
from torchferry.edits.check import CastAround
from torchferry.records import Fault
from torchferry.records.findings import MendNotShown, OutputsChanged

# Another opset or a rewritten node may sum in another order; anything beyond that is another meaning.
RELATIVE, ABSOLUTE = 1e-3, 1e-5
LARGEST = 2**31 - 1


# onnxruntime's own way around sums that the processor cuts off; where that was mended, the original is wrong without it
PRECISELY = {"session.x64quantprecision": "1"}


def findings(
    mending: Mending, original: Path, config: Mapping[str, str] | None = None
) -> list[OutputsChanged] | list[MendNotShown]:
    """Return where a mended file gives something else than the original; where that does not run, what else is not shown."""
    key = mending.worker.open(original, config=dict(config or {}))
    if isinstance(key, Fault):
        return mends.not_shown(mending) if mending.feeds else []
    found, compared = [], 0
    for number, feed in enumerate(mending.asked()):
        before, after = mending.worker.run(key, feed), mending.outputs(feed)
        if not isinstance(before, Fault) and after is not None:
            compared += 1
            found += [OutputsChanged(number, words) for words in _differences(before, after)]
    mending.worker.close(key)
    return found if compared else mends.not_shown(mending)


def overflows(opened: Opened, edits: Sequence[CastAround], feeds: Sequence[Feed]) -> list[OutputsChanged]:
    """Return where a value was cast to int32 on the way to a node, and does not fit."""
    narrowed = {i for e in edits for entry in e.nodes if entry.to == "int32" for i in entry.inputs}
    tracer = opened.tracer() if narrowed else None
    found = []
    for number, feed in enumerate(feeds if tracer is not None else ()):
        made = tracer.values(feed, only=sorted(narrowed)) if tracer is not None else {}
        values = {**feed, **(made if not isinstance(made, Fault) else {})}
        for name in sorted(narrowed & set(values)):
            if values[name].size and np.abs(values[name].astype(np.float64)).max() > LARGEST:
                words = f"`{name}` holds values that int32, in which its reader is computed, cannot hold"
                found.append(OutputsChanged(number, words))
    return found


def _differences(before: list[Any], after: list[Any]) -> list[str]:
    words = []
    for index, (a, b) in enumerate(zip(before, after, strict=False)):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.kind in "OUS":
            continue
        if a.shape != b.shape:
            words.append(f"output {index} has the shape {list(b.shape)}, it was {list(a.shape)}")
            continue
        old, new = a.astype(np.float64), b.astype(np.float64)
        compared = ~np.isnan(old)  # a repair may put a number in the place of NaN
        if not np.allclose(new[compared], old[compared], rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True):
            words.append(f"output {index} is off by {np.nanmax(np.abs(new[compared] - old[compared])):.3g}")
    return words
