"""Time and peak memory of `torchferry.export`, verification included, beside plain `torch.onnx.export`, as ratios.

    python benchmarks/export.py [mlp cnn gpt2] [--rounds 2]

Each export runs in a process of its own, the two tools in turn, so that noise on the machine meets both. Memory is what
the process and its children hold above what they held once the model was built, at the worst moment, against the bytes
of the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

TOOLS = ("stock", "torchferry")


def mlp() -> tuple[Any, tuple[Any, ...]]:
    import torch

    layers = [
        torch.nn.Linear(256, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    ]
    return torch.nn.Sequential(*layers).eval(), (torch.randn(4, 256),)


def cnn() -> tuple[Any, tuple[Any, ...]]:
    """A ResNet-50's worth of residual blocks, without torchvision."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, n_in: int, n_out: int, stride: int) -> None:
            super().__init__()
            mid = n_out // 4
            self.body = nn.Sequential(
                nn.Conv2d(n_in, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
                nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
                nn.Conv2d(mid, n_out, 1, bias=False), nn.BatchNorm2d(n_out),
            )  # fmt: skip
            same = n_in == n_out and stride == 1
            self.skip = (
                nn.Identity() if same else nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
            )

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.skip(x))

    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for n_out, blocks, stride in ((256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2)):
        for index in range(blocks):
            layers.append(Block(width, n_out, stride if index == 0 else 1))
            width = n_out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers).eval(), (torch.randn(2, 3, 64, 64),)


def gpt2() -> tuple[Any, tuple[Any, ...]]:
    """GPT-2 small, 12 layers, random weights; wrapped to give logits only, since stock cannot return the cache."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lm = GPT2LMHeadModel(GPT2Config()).eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.lm(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    ids = torch.randint(0, 50257, (2, 8))
    return Logits().eval(), (ids, torch.ones_like(ids))


MODELS = {"mlp": mlp, "cnn": cnn, "gpt2": gpt2}


def held() -> int:
    """Return the memory of this process and its children."""
    me = psutil.Process()
    total = 0
    for process in [me, *me.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def work(model_name: str, tool: str) -> dict[str, float]:
    """Export one model with one tool in this process; return seconds and bytes."""
    import torch

    model, args = MODELS[model_name]()
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    with torch.no_grad():
        model(*args)
    before, peak, done = held(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, held())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        began = time.perf_counter()
        if tool == "stock":
            moving = torch.export.Dim.DYNAMIC  # what torchferry finds by itself, told to stock
            shapes = tuple({0: moving} if a.is_floating_point() else {0: moving, 1: moving} for a in args)
            torch.onnx.export(model, args, path, dynamo=True, dynamic_shapes=shapes, verbose=False)
            trials = 0
        else:
            import torchferry

            result = torchferry.export(model, args, path)
            trials = len(result.trials)
        seconds = time.perf_counter() - began
    done.set()
    thread.join()
    return {"seconds": seconds, "peak": peak - before, "weights": weights, "trials": trials}


def measured(model: str, tool: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--work", model, tool]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return dict(json.loads(ran.stdout.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--work", nargs=2, metavar=("MODEL", "TOOL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(*options.work)))
        return
    print(f"{Path(__file__).name}: medians of {options.rounds} rounds")
    for model in options.models:
        rounds = [{tool: measured(model, tool) for tool in TOOLS} for _ in range(options.rounds)]
        middle = {t: {k: statistics.median(r[t][k] for r in rounds) for k in rounds[0][t]} for t in TOOLS}
        stock, ours = middle["stock"], middle["torchferry"]
        print(
            f"{model:6} time {ours['seconds']:6.1f} s against {stock['seconds']:6.1f} s: "
            f"ratio {ours['seconds'] / stock['seconds']:.2f}, "
            f"{ours['trials']:.0f} trials included; peak memory {ours['peak'] / ours['weights']:.2f} x the weights "
            f"against {stock['peak'] / stock['weights']:.2f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
