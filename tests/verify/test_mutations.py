"""Correct files wounded at random: of the wounds that change any output, at least 95 of 100 are caught."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from crossing import stock
from mutations import wounded
from torch import nn

from torchferry import ort, pipeline
from torchferry.records import Case, Fault, Job
from torchferry.verify import verify


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(20, 8), nn.Embedding(16, 8)
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8, eps=1e-5)

    def forward(self, ids, mask):
        x = self.norm(self.emb(ids) + self.pos(torch.arange(ids.shape[1])))
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)) / 8**0.5
        scores = scores.masked_fill(mask[:, None, :] == 0, -1e9)
        return x + self.out(scores.softmax(-1) @ v)


MODELS: dict[str, tuple[nn.Module, tuple[Any, ...], Any]] = {
    "perceptron": (
        nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(-1)),
        (torch.randn(2, 5),),
        {"input": {0: "batch"}},
    ),
    "convolutions": (
        nn.Sequential(nn.Conv2d(2, 4, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3), nn.Sigmoid()),
        (torch.randn(2, 2, 10, 10),),
        {"input": {0: "batch"}},
    ),
    "attention": (
        Attention(),
        (torch.randint(0, 20, (2, 5)), torch.ones(2, 5, dtype=torch.int64)),
        {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}},
    ),
    "recurrent": (nn.GRU(4, 3, batch_first=True), (torch.randn(2, 5, 4),), {"input": {0: "batch", 1: "length"}}),
}


def probes(args: tuple[torch.Tensor, ...]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield ordinary inputs of the declared sizes, made without the verifier's own generator."""
    generator = torch.Generator().manual_seed(99)
    for _ in range(12):
        yield tuple(
            torch.randn(a.shape, generator=generator)
            if a.is_floating_point()
            else a
            if bool((a == 1).all())
            else torch.randint(0, 20, a.shape, generator=generator)
            for a in args
        )


def changes_an_output(worker: ort.Worker, good: Path, bad: Path, names: list[str], args: tuple[torch.Tensor, ...]) -> bool:
    """Return whether two files differ on some ordinary input, by more than anybody would call rounding."""
    keys = [worker.open(good), worker.open(bad)]
    if isinstance(keys[1], Fault):
        return False  # it does not load: that is loud, and no business of the verifier's
    for call in probes(args):
        want, got = (worker.run(str(k), {n: a.numpy() for n, a in zip(names, call, strict=True)}) for k in keys)
        assert not isinstance(want, Fault)
        if isinstance(got, Fault) or any(w.shape != g.shape for w, g in zip(want, got, strict=True)):
            return True
        if any(not np.allclose(w, g, rtol=1e-3, atol=1e-4, equal_nan=True) for w, g in zip(want, got, strict=True)):
            return True
    return False


def with_file(case: Case, path: Path) -> Case:
    """Return a case as it was before verification, with another file."""
    kept = [s for s in case.steps if s.stage in ("inputs", "translate")]
    steps = tuple(replace(s, value=replace(s.value, path=path)) if s.stage == "translate" else s for s in kept)
    return replace(case, job=replace(case.job, onnx=path), steps=steps, diagnoses=())


def caught(name: str, seeds: range, tmp_path: Path) -> tuple[int, int, list[int]]:
    """Return how many wounds changed an output, how many of them were caught, and the seeds of the missed."""
    torch.manual_seed(0)
    model, args, axes = MODELS[name]
    good = stock(model.eval(), args, tmp_path / "good.onnx", axes)
    names = list(inspect.signature(model.forward).parameters)[: len(args)]
    bound = pipeline.run(Job(model, args, onnx=good, workspace=tmp_path))
    assert bound.ok, [(d.code, d.message) for d in bound.diagnoses]
    proto, harmful, missed = onnx.load(str(good)), 0, []
    with ort.Worker(time_limit=30) as worker:
        for seed in seeds:
            wound = wounded(proto, seed)
            if wound is None:
                continue
            bad = tmp_path / f"bad{seed}.onnx"
            onnx.save(wound, str(bad))
            if not changes_an_output(worker, good, bad, names, args):
                continue
            harmful += 1
            step = verify(with_file(bound, bad))
            if step.fault is None and not step.findings and not step.value.failed:
                missed.append(seed)
    return harmful, harmful - len(missed), missed


@pytest.mark.parametrize("name", ["perceptron", "attention"])
def test_wounds_are_caught(name: str, tmp_path: Path) -> None:
    harmful, found, missed = caught(name, range(6), tmp_path)
    assert harmful >= 2
    assert found == harmful, f"missed the wounds of seeds {missed}"


@pytest.mark.slow
def test_nearly_all_of_many_wounds_are_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = {name: caught(name, range(100, 160), tmp_path) for name in MODELS}
    harmful, found = sum(r[0] for r in results.values()), sum(r[1] for r in results.values())
    missed = {n: r[2] for n, r in results.items() if r[2]}
    with capsys.disabled():
        print(f"\n{found} of {harmful} harmful wounds caught ({found / harmful:.1%}); missed: {missed or 'none'}")
    assert harmful > 100
    assert found / harmful >= 0.95
