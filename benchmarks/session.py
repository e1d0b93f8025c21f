"""What torchferry.InferenceSession costs over onnxruntime's on a good feed: microseconds for each call, and as a part of the run.

    python benchmarks/session.py

The bar: under 20 microseconds, or 2 % of the run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
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


def microseconds(plain: Any, ours: Any, feed: dict[str, Any], calls: int) -> tuple[float, float]:
    """Return the median time of a call in each, and of the difference: rounds take turns, for others share this machine."""
    rounds, more = [], []
    for _ in range(40):
        spent = []
        for session in (plain, ours):
            began = time.perf_counter()
            for _ in range(calls):
                session.run(None, feed)
            spent.append((time.perf_counter() - began) / calls * 1e6)
        rounds.append(spent[0])
        more.append(spent[1] - spent[0])
    return median(rounds), median(more)


def main() -> int:
    worst_is_good = True
    print(f"{'model':<18} {'onnxruntime':>12} {'torchferry':>12} {'more':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, shapes) in MODELS.items():
            path = Path(folder) / "model.onnx"
            path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
            feed = {n: np.ones(shape, np.float32) for n, shape in shapes.items()}
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            plain = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            ours = InferenceSession(path, options)
            base, more = microseconds(plain, ours, feed, 500 if len(feed) != 2 else 30)
            print(f"{name:<18} {base:>9.1f} us {base + more:>9.1f} us {more:>6.1f} us {1 + more / base:>7.3f}")
            worst_is_good &= more < 20 or more / base < 0.02
    return 0 if worst_is_good else 1


if __name__ == "__main__":
    sys.exit(main())
