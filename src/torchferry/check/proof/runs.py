"""Two models side by side, each opened once and run often; and what counts as the same."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
import onnx

from torchferry.check.running.trace import Feed, Tracer
from torchferry.records import Fault

# A batch is multiplied in other blocks than its rows are, so that sums round otherwise: a few times the type's own precision,
# of the largest number that an output holds.
ROUNDING = {8: 1e-9, 4: 2e-5, 2: 1e-2}


class Running:
    """A model that is opened once, optimisations off, and run on any number of feeds; a context manager."""

    def __init__(self, tracer: Tracer, model: onnx.ModelProto, name: str) -> None:
        self._tracer, self._model = tracer, model
        self._file = tracer.scratch / f"{name}.onnx"
        self._key: str | Fault = Fault("NotOpen", "")

    def __enter__(self) -> Running:
        self._file.write_bytes(self._model.SerializeToString())
        self._key = self._tracer.worker.open(self._file, level="none", data_folder=str(self._tracer.home))
        self._wanted = {i.name for i in self._model.graph.input}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not isinstance(self._key, Fault):
            self._tracer.worker.close(self._key)

    def __call__(self, feed: Feed) -> list[Any] | None:
        """Return the outputs; None where the run fails."""
        if isinstance(self._key, Fault):
            return None
        answer = self._tracer.worker.run(self._key, {k: v for k, v in feed.items() if k in self._wanted})
        return None if isinstance(answer, Fault) else answer


def identical(first: Any, second: Any) -> bool:
    """Say whether two outputs are the same, bit for bit; one NaN is as good as another."""
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return _same_lists(first, second, identical)
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"))


def close(first: Any, second: Any) -> bool:
    """Say whether two outputs are the same up to the rounding of another order of sums; numbers that are whole exactly."""
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return _same_lists(first, second, close)
    if first.shape != second.shape:
        return False
    if first.dtype.kind not in "fcV":
        return bool(np.array_equal(first, second))
    a, b = first.astype(np.complex128), second.astype(np.complex128)
    finite = np.abs(b[np.isfinite(b)])
    allowed = ROUNDING.get(first.dtype.itemsize, 2e-5) * float(finite.max() if finite.size else 0)
    return bool(np.allclose(a, b, rtol=0, atol=max(allowed, 1e-30), equal_nan=True))


def all_identical(first: Sequence[Any] | None, second: Sequence[Any] | None) -> bool:
    """Say whether two runs gave the same outputs, bit for bit; a run that failed gave none."""
    if first is None or second is None or len(first) != len(second):
        return False
    return all(identical(a, b) for a, b in zip(first, second, strict=True))


def _same_lists(first: Any, second: Any, same: Any) -> bool:
    if not isinstance(first, list | tuple) or not isinstance(second, list | tuple) or len(first) != len(second):
        return type(first) is type(second) and not isinstance(first, np.ndarray) and first == second
    return all(same(a, b) for a, b in zip(first, second, strict=True))
