"""Correct files wounded at random: of the wounds that change any output, at least 95 of 100 are caught.

Which wounds do is told without the verifier: both files are run in onnxruntime on inputs made here, over the declared sizes.
"""

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
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from mutations import wounded
from torch import nn

from torchferry import pipeline
from torchferry.records import Case, Fault, Job
from torchferry.verify import verify
from torchferry.worker import Worker


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


class Signal(nn.Module):
    """Slices, powers, reductions and comparisons, without weights."""

    def forward(self, x):
        near, far = x[:, :-1], x[:, 1:]
        step = (far - near) / ((near.abs() + far.abs()) + 0.5)
        rough = torch.where(step > 0.1, step**2, step * 0.5)
        return torch.cat([rough.cumsum(1), x[:, :1] - x.mean(1, keepdim=True)], 1), rough.sum(1)


torch.manual_seed(0)  # the weights of the models below
MODELS: dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, dict[int, str]]]] = {
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
    "signal": (Signal(), (torch.randn(2, 7),), {"x": {0: "batch", 1: "length"}}),
}
SIZES = ({}, {"batch": 1}, {"batch": 5}, {"length": 2}, {"length": 9}, {"batch": 3, "length": 13})


def probes(args: tuple[torch.Tensor, ...], axes: list[dict[int, str]]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield ordinary inputs over the declared sizes, made without the verifier's own generator; masks are padded at random."""
    generator = torch.Generator().manual_seed(99)
    for n in range(18):
        sizes = SIZES[n % len(SIZES)]
        shapes = [[sizes.get(a.get(i, ""), s) for i, s in enumerate(t.shape)] for t, a in zip(args, axes, strict=True)]
        yield tuple(_made(t, shape, generator) for t, shape in zip(args, shapes, strict=True))


def _made(example: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    if example.is_floating_point():
        return torch.randn(shape, generator=generator)
    if bool((example == 1).all()):
        lengths = torch.randint(1, shape[1] + 1, (shape[0], 1), generator=generator)
        return (torch.arange(shape[1])[None] < lengths).long()
    return torch.randint(0, 20, shape, generator=generator)


def changes_an_output(worker: Worker, good: Path, bad: Path, bench: Bench) -> bool:
    """Return whether two files differ on some ordinary input, by more than anybody would call rounding."""
    keys = [worker.open(good), worker.open(bad)]
    if isinstance(keys[1], Fault):
        return False  # it does not load: that is loud, and no business of the verifier's
    for call in probes(bench.args, bench.axes):
        want, got = (worker.run(str(k), {n: a.numpy() for n, a in zip(bench.names, call, strict=True)}) for k in keys)
        assert not isinstance(want, Fault)
        if isinstance(got, Fault) or any(w.shape != g.shape for w, g in zip(want, got, strict=True)):
            return True
        if any(not np.allclose(w, g, rtol=1e-3, atol=1e-4, equal_nan=True) for w, g in zip(want, got, strict=True)):
            return True
    return False


class Bench:
    """A model, its correct file, and the case as it stands before verification."""

    def __init__(self, name: str, folder: Path) -> None:
        torch.manual_seed(0)
        model, self.args, axes = MODELS[name]
        self.folder, self.names = folder, list(inspect.signature(model.forward).parameters)[: len(self.args)]
        self.axes = [axes.get(n, {}) for n in self.names]
        self.good = stock(model.eval(), self.args, folder / "good.onnx", axes)
        self.case = pipeline.run(Job(model, self.args, onnx=self.good, workspace=folder))
        assert self.case.ok, [(d.code, d.message) for d in self.case.diagnoses]
        self.proto = onnx.load(str(self.good))

    def wound(self, worker: Worker, seed: int) -> Path | None:
        """Return a wounded copy of the file; None where the wound changes nothing, or makes it fail to load."""
        wound = wounded(self.proto, seed)
        if wound is None:
            return None
        bad = self.folder / f"bad{seed}.onnx"
        onnx.save(wound, str(bad))
        return bad if changes_an_output(worker, self.good, bad, self) else None

    def missed(self, bad: Path) -> bool:
        """Return whether the verifier finds nothing wrong."""
        step = verify(with_file(self.case, bad))
        return step.fault is None and not step.value.failed and step.value.shown


def with_file(case: Case, path: Path) -> Case:
    """Return a case as it was before verification, with another file."""
    kept = [s for s in case.steps if s.stage in ("inputs", "translate")]
    steps = tuple(replace(s, value=replace(s.value, path=path)) if s.stage == "translate" else s for s in kept)
    return replace(case, job=replace(case.job, onnx=path), steps=steps, diagnoses=())


@pytest.fixture(scope="module")
def signal(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench("signal", tmp_path_factory.mktemp("signal"))


@settings(max_examples=6, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_a_wound_that_changes_an_output_is_caught(signal: Bench, seed: int) -> None:
    with Worker(time_limit=30) as worker:
        bad = signal.wound(worker, seed)
    assume(bad is not None)
    assert bad is not None
    assert not signal.missed(bad), f"missed the wound of seed {seed}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nearly_all_of_many_wounds_are_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harmful, missed = dict.fromkeys(MODELS, 0), {}
    for name in MODELS:
        (tmp_path / name).mkdir()
        bench = Bench(name, tmp_path / name)
        with Worker(time_limit=30) as worker:
            wounds = {seed: bad for seed in range(100, 160) if (bad := bench.wound(worker, seed)) is not None}
        harmful[name] = len(wounds)
        missed[name] = [seed for seed, bad in wounds.items() if bench.missed(bad)]
        with capsys.disabled():
            print(
                f"\n{name}: {harmful[name] - len(missed[name])} of {harmful[name]} harmful wounds caught; missed {missed[name]}"
            )
    total, lost = sum(harmful.values()), sum(len(m) for m in missed.values())
    with capsys.disabled():
        print(f"{total - lost} of {total} harmful wounds caught ({1 - lost / total:.1%})")
    assert total > 100
    assert 1 - lost / total >= 0.99
