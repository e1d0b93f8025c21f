"""A file as it came and as it was mended, with feeds that both may be asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from torchferry.check import passes
from torchferry.check.passes import written
from torchferry.check.proof import values
from torchferry.check.running.trace import Feed, Tracer, Values
from torchferry.edits.check import FreeSizes, GraphPass, RelocateData, RewriteConstants
from torchferry.records import Fault
from torchferry.worker import Worker

PATIENCE = 30.0  # seconds for the evaluator, which is written to be read and not to be fast
MOST_FEEDS = 4


@dataclass(frozen=True, slots=True)
class Mending:
    """The file as it was read, the mended one with its session's key, what was done to it, and the feeds that it ran on."""

    worker: Worker
    scratch: Path
    home: Path  # where the weights of the file as it came lie
    mended_home: Path  # where those of the mended one lie
    raw: onnx.ModelProto
    model: onnx.ModelProto
    key: str
    edits: tuple[GraphPass, ...]
    feeds: tuple[Feed, ...]

    def before(self) -> onnx.ModelProto:
        """Return the file as it came, with nothing done but that its weights are read from where they are."""
        made = onnx.ModelProto()
        made.CopyFrom(self.raw)
        for edit in self.edits:
            if isinstance(edit, RelocateData):
                passes.apply(made, edit)
        return made

    def written(self) -> Path:
        """Write the file as it came, its weights inside or beside it, into the scratch folder, and return its path."""
        path = self.scratch / "as-it-came.onnx"
        written.write(self.before(), path, self.home)
        return path

    def asked(self) -> list[Feed]:
        """Return the feeds to compare on: the user's, at the sizes that the file had; and one of other values."""
        feeds = [_at_old_sizes(feed, self.edits) for feed in self.feeds[: MOST_FEEDS - 1]]
        return feeds + [values.drawn(feed, 3) for feed in feeds[:1]]

    def outputs(self, feed: Feed) -> list[Any] | None:
        """Return what the mended file gives, as users run it; None where it does not run."""
        answer = self.worker.run(self.key, feed)
        return None if isinstance(answer, Fault) else answer

    def values(self, feed: Feed, names: Iterable[str]) -> Values:
        """Return values of the mended file by name: fed, stored, or made by its main graph; not those of subgraphs."""
        wanted = sorted({n for n in names if n and n not in feed})
        found: Values = dict(feed)
        for tensor in self.model.graph.initializer:
            if tensor.name in wanted:
                found[tensor.name] = np.asarray(onnx.numpy_helper.to_array(tensor, str(self.mended_home)))
        made = Tracer(self.worker, self.model, self.mended_home, self.scratch).values(feed, only=wanted)
        return found | (made if not isinstance(made, Fault) else {})


def _at_old_sizes(feed: Feed, edits: Sequence[GraphPass]) -> Feed:
    """Return a feed at the sizes from which others were set free, if any were."""
    shapes = {n: shape for e in edits if isinstance(e, FreeSizes | RewriteConstants) for n, shape in e.example.items()}
    for name, shape in shapes.items():
        array = feed.get(name)
        if isinstance(array, np.ndarray) and array.ndim == len(shape):
            for axis, size in enumerate(shape):
                feed = values.resized(feed, [(name, axis)], size) if array.shape[axis] != size else feed
    return feed
