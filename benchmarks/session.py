"""What torchferry.InferenceSession costs over onnxruntime's: microseconds for each call, on good feeds and on refused ones.

    python benchmarks/session.py                            the overhead, and 100,000 runs from 8 threads
    python benchmarks/session.py --runs 1000000             a million of them
    python benchmarks/session.py --exports 100              and what memory is left taken by that many exports

The bars: a good run costs under 20 microseconds more, or 2 %; a refused feed at most 50 microseconds more than onnxruntime's own
error; memory stays flat, under 20 MB more after many runs, failing ones among them, and under 0.5 MB for each export.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from torchferry.runtime.session import InferenceSession

MODELS = {
    "one operator": (
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }',
        {"x": (2, 3)},
    ),
    "ten inputs": (
        f"""<ir_version: 8, opset_import: ["": 18]> g ({", ".join(f"float[N] x{i}" for i in range(10))}) => (float[N] y)
        {{ y = Sum ({", ".join(f"x{i}" for i in range(10))}) }}""",
        {f"x{i}": (8,) for i in range(10)},
    ),
    "fifty inputs": (  # a decoder with its cache
        f"""<ir_version: 8, opset_import: ["": 18]> g ({", ".join(f"float[N] x{i}" for i in range(50))}) => (float[N] y)
        {{ y = Sum ({", ".join(f"x{i}" for i in range(50))}) }}""",
        {f"x{i}": (8,) for i in range(50)},
    ),
    "a matrix product": (
        """<ir_version: 8, opset_import: ["": 18]> g (float[N, 512] x, float[512, 512] w) => (float[N, 512] y)
        { y = MatMul (x, w) }""",
        {"x": (64, 512), "w": (512, 512)},
    ),
}


# what is fed to the model above it, and refused; onnxruntime's own error is the other side of the comparison
REFUSED: dict[str, tuple[str, dict[str, np.ndarray] | list[dict[str, np.ndarray]]]] = {
    "sizes never seen": (
        "one operator",
        [{"x": np.ones((2, 4 + i), np.float32)} for i in range(500)],
    ),  # no words are kept for them
    "a fixed size": ("one operator", {"x": np.ones((2, 4), np.float32)}),
    "another rank": ("one operator", {"x": np.ones((2, 3, 1, 1), np.float32)}),
    "another type": ("one operator", {"x": np.ones((2, 3), np.complex64)}),
    "nothing": ("one operator", {}),
    "another name": ("a matrix product", {"x": np.ones((64, 512), np.float32), "v": np.ones((3, 3, 3), np.float32)}),
    "a node that fails": ("a matrix product", {"x": np.ones((64, 512), np.float32), "w": np.ones((511, 512), np.float32)}),
    "sizes that disagree": ("ten inputs", {f"x{i}": np.ones(8 if i else 7, np.float32) for i in range(10)}),
    "one of fifty": ("fifty inputs", {f"x{i}": np.ones(8 if i else 7, np.float32) for i in range(50)}),
}


def microseconds(plain: Any, ours: Any, given: Any, calls: int) -> tuple[float, float]:
    """Return the least time of a call in the one, and how much more the other takes: of the processor, which others share."""
    feeds = cycle(given if isinstance(given, list) else [given])
    rounds: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(40):
        for side, session in enumerate((plain, ours)):
            began = time.thread_time()
            for _ in range(calls):
                answered(session, next(feeds))
            rounds[side].append((time.thread_time() - began) / calls * 1e6)
    return min(rounds[0]), min(rounds[1]) - min(rounds[0])


def answered(session: Any, feed: dict[str, Any]) -> bool:
    """Whether a feed is run; a refusal is caught as a server would."""
    try:
        session.run(None, feed)
    except Exception:  # onnxruntime's own kinds, and ours
        return False
    return True


def opened(folder: str, name: str) -> tuple[Any, Any]:
    """Return onnxruntime's session and ours on one of the models, both silent about errors that they raise."""
    path = Path(folder) / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(MODELS[name][0]).SerializeToString())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]), InferenceSession(path, options)


def overhead(folder: str) -> bool:
    print(f"{'good feeds':<20} {'onnxruntime':>12} {'torchferry':>12} {'more':>9} {'ratio':>7}")
    good = True
    for name, (_, shapes) in MODELS.items():
        feed = {n: np.ones(shape, np.float32) for n, shape in shapes.items()}
        base, more = microseconds(*opened(folder, name), feed, 500 if len(feed) != 2 else 30)
        told(name, base, more)
        good &= more < 20 or more / base < 0.02
    print(f"\n{'refused feeds':<20} {'onnxruntime':>12} {'torchferry':>12} {'more':>9} {'ratio':>7}")
    for name, (model, feed) in REFUSED.items():
        plain, ours = opened(folder, model)
        one = feed[0] if isinstance(feed, list) else feed
        assert not answered(plain, one), name
        assert not answered(ours, one), name
        base, more = microseconds(plain, ours, feed, 100)
        told(name, base, more)
        good &= more < 50
    return good


def told(name: str, base: float, more: float) -> None:
    print(f"{name:<20} {base:>9.1f} us {base + more:>9.1f} us {more:>6.1f} us {1 + more / base:>7.3f}")


def resident() -> float:
    """Return the megabytes that this process holds, when what nobody refers to is gone."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def many_runs(folder: str, runs: int, threads: int = 8) -> bool:
    """Whether memory stays flat over many runs from several threads, one in a hundred of a feed that fails."""
    _, ours = opened(folder, "a matrix product")
    fine = {"x": np.ones((2, 512), np.float32), "w": np.ones((512, 512), np.float32)}
    bad = {"x": np.ones((2, 512), np.float32), "w": np.ones((511, 512), np.float32)}

    def serve(count: int) -> None:
        for i in range(count):
            assert answered(ours, bad if i % 100 == 0 else fine) == bool(i % 100)

    def in_threads(count: int) -> float:
        at_work = [threading.Thread(target=serve, args=(count // threads,)) for _ in range(threads)]
        for thread in at_work:
            thread.start()
        for thread in at_work:
            thread.join()
        return resident()

    first, began = in_threads(max(runs // 10, 800)), time.perf_counter()
    last = in_threads(runs)
    each = (time.perf_counter() - began) / runs * 1e6
    print(f"\n{runs:,} runs from {threads} threads: {first:.1f} -> {last:.1f} MB, ratio {last / first:.3f}, {each:.0f} us each")
    return last - first < 20


def many_exports(exports: int) -> bool:
    """Whether memory stays flat over many exports of a small model; the first few load what is loaded once."""
    import torch

    import torchferry

    warm, held = min(10, exports // 2), []
    for _ in range(exports):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
        torchferry.export(model, (torch.ones(2, 4),))
        held.append(resident())
    each = (held[-1] - held[warm - 1]) / max(1, exports - warm)
    print(
        f"{exports} exports: {held[warm - 1]:.1f} -> {held[-1]:.1f} MB, ratio {held[-1] / held[warm - 1]:.3f}, {each:.2f} MB each"
    )
    return each < 0.5


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--runs", type=int, default=100_000)
    asked.add_argument("--exports", type=int, default=0)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = overhead(folder)
        good &= many_runs(folder, given.runs) if given.runs else True
    good &= many_exports(given.exports) if given.exports else True
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
