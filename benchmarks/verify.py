"""Time of the default verification relative to the export it belongs to, and of finding one wrong node among hundreds.

    python benchmarks/verify.py [mlp cnn bert gpt2]

Each export runs in a process of its own; the stages time themselves, so that a ratio compares parts of one and the same run.
For GPT-2 one node of the verified file, in the eighth of twelve layers, is then made wrong. What is timed is what comes after
the trials that show it: shrinking, blaming and naming the node; beside it stand one eager call and the export.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def mlp() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torch import nn

    layers = [nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)]
    return nn.Sequential(*layers).eval(), (torch.randn(4, 256),)


def cnn() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for n_in, n_out in ((3, 64), (64, 128), (128, 256), (256, 512)):
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).eval(), (torch.randn(2, 3, 64, 64),)


def bert() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import BertConfig, BertModel

    ids = torch.randint(0, 30522, (2, 16))
    return BertModel(BertConfig()).eval(), (ids, torch.ones_like(ids))


def gpt2() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False)).eval(), (torch.randint(0, 50257, (2, 7)),)


MODELS = {"mlp": mlp, "cnn": cnn, "bert": bert, "gpt2": gpt2}


def measure(name: str) -> dict[str, Any]:
    """Return the seconds of each stage of one export, and how many trials were run."""
    import torchferry

    model, args = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        result = torchferry.export(model, args, Path(folder) / "model.onnx", check=False)
        best = result.history.best
        seconds = {s.stage: s.seconds for s in best.steps}
        told = {"ok": result.ok, "trials": len(result.trials), "seconds": seconds}
        if name == "gpt2" and result.ok:
            told["found"] = find_wrong_node(model, args, Path(folder) / "model.onnx")
        return told


def find_wrong_node(model: Any, args: tuple[Any, ...], path: Path) -> dict[str, Any]:
    """Return how long it took to find one wrong node of a file, and whether that node and its module were named."""
    import onnx
    import torch

    import torchferry

    file = onnx.load(str(path), load_external_data=False)
    wrong = [n for n in file.graph.node if n.op_type == "Tanh"][7]
    wrong.op_type = "Erf"
    path.write_bytes(file.SerializeToString())
    began = time.perf_counter()
    with torch.no_grad():
        model(*args)
    eager = time.perf_counter() - began
    times: dict[str, float] = {}  # of the last trial, and of the end of the stage
    result = torchferry.verify(model, path, args, check=False, progress=lambda e: times.update({e.kind: time.perf_counter()}))
    place = result.diagnoses[0].location
    return {
        "eager": eager,
        "nodes": len(file.graph.node),
        "trials": sum(t.seconds for t in result.trials),
        "locating": times["end"] - times["tick"],
        "right": place.module_path == "transformer.h.7.mlp.act" and place.onnx_node == wrong.name,
    }


def main(names: list[str]) -> None:
    """Print a line for each model: how long the trials took, and what share of the export that is."""
    print(f"{'model':6} {'verified':9} {'trials':>6} {'verify':>8} {'rest':>8} {'verify/rest':>12}")
    for name in names or list(MODELS):
        child = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
        told = json.loads(child.stdout.strip().splitlines()[-1])
        spent = told["seconds"].pop("verify", 0.0)
        rest = sum(told["seconds"].values())
        print(f"{name:6} {told['ok']!s:9} {told['trials']:6} {spent:7.1f}s {rest:7.1f}s {spent / rest:12.2f}", flush=True)
        if found := told.get("found"):
            named = "named" if found["right"] else "NOT named"
            beside = f"one eager call {found['eager']:.2f}s, the trials {found['trials']:.1f}s, the export {rest:.1f}s"
            print(f"       one wrong node of {found['nodes']}: {named} in {found['locating']:.1f}s ({beside})", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(sys.argv[1:])
