"""What `torchferry check` costs on healthy files: its time beside that of a fresh process which only opens the file.

    python benchmarks/check.py

Five exports of usual architectures, the largest some hundred megabytes; both sides are whole processes, the median of three.
Processor time of all processes together, and the clock's: check has two processes, which load their libraries side by side
where there are two cores to do it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

OPEN = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"
CHECK = "import sys, torchferry; result = torchferry.check(sys.argv[1]); sys.exit(not result.ok or bool(result.diagnoses))"


def models() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield names, models and example arguments."""
    import torch
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

    ids = torch.ones(1, 16, dtype=torch.long)
    layers = [
        torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU()) for _ in range(20)
    ]
    yield "cnn", torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), *layers), (torch.ones(1, 3, 64, 64),)
    yield "lstm", torch.nn.LSTM(256, 512, num_layers=3), (torch.ones(20, 1, 256),)
    yield "bert", BertModel(BertConfig(num_hidden_layers=6), add_pooling_layer=False), (ids,)
    yield "gpt2", GPT2LMHeadModel(GPT2Config(n_layer=6, use_cache=False)), (ids,)
    yield "mlp", torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(6))), (torch.ones(1, 4096),)


def seconds(code: str, path: Path) -> tuple[float, float]:
    """Return the processor's and the clock's time that a process takes for `path`; raises where it reports something."""
    kept = {"PYTHONPYCACHEPREFIX": str(path.parent.parent / "torchferry-benchmark-pycache"), "PYTHONDONTWRITEBYTECODE": ""}
    rounds = []
    for _ in range(4):
        began, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], check=True, env={**os.environ, **kept})
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        rounds.append((spent, time.perf_counter() - clock))
    return median(r[0] for r in rounds[1:]), median(r[1] for r in rounds[1:])  # the first one compiles


def main() -> int:
    import torch

    warnings.filterwarnings("ignore")
    print(f"{'':<16}{'processor':^27} {'clock':^27}")
    print(f"{'model':<6} {'megabytes':>9}" + f" {'opening':>9} {'check':>9} {'ratio':>6} " * 2)
    for name, model, args in models():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "export" / "model.onnx"
            path.parent.mkdir()
            torch.onnx.export(model.eval(), args, str(path), dynamo=True, verbose=False)
            size = sum(p.stat().st_size for p in path.parent.iterdir()) >> 20
            both = zip(seconds(OPEN, path), seconds(CHECK, path), strict=True)
            columns = "".join(f" {a:>7.2f} s {b:>7.2f} s {b / a:>6.2f} " for a, b in both)
            print(f"{name:<6} {size:>9}{columns}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
