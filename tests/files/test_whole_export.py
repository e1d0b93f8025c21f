"""File operations of a whole export fail, from binding to the file in its place: words come out, and the old file stays."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from failing_files import failing

import torchferry
from torchferry.translate import save

CHEAP = torchferry.Budget(trials=2, mutants=0)
X = torch.ones(1, 32)


def layer(value: float) -> torch.nn.Module:
    made = torch.nn.Linear(32, 32)
    torch.nn.init.constant_(made.weight, value)
    return made


def export(place: Path, value: float) -> None:
    torchferry.export(layer(value), (X,), place / "m.onnx", dynamic_shapes="none", budget=CHEAP)


def answer(place: Path) -> float:
    session = torchferry.InferenceSession(place / "m.onnx")
    return float(np.round(session.run(None, {session.get_inputs()[0].name: X.numpy()})[0].mean()))


def fail_at(place: Path, operations: Sequence[int]) -> None:
    for at in operations:
        told = ""
        try:
            failed = failing.run(lambda: export(place, 2.0), at, "error", errno.ENOSPC)
        except torchferry.UsageError as error:
            told, failed = str(error), failing.failed
        assert not told or "the disk is full" in told, told
        assert answer(place) in ((32.0, 64.0) if told else (64.0,)), f"{at}, {failed}"
        if told:
            assert len(list(place.iterdir())) == 2, f"{at}, {failed}"
        export(place, 1.0)
        assert len(list(place.iterdir())) == 2, f"{at}, {failed}"
        assert answer(place) == 32.0


@pytest.fixture
def operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(save, "INLINE_BYTES", 0)
    export(tmp_path, 1.0)
    failing.run(lambda: export(tmp_path, 2.0))
    export(tmp_path, 1.0)
    return list(failing.seen)


def test_some_operations_of_an_export_fail(tmp_path: Path, operations: list[str]) -> None:
    fail_at(tmp_path, range(3, len(operations) + 1, len(operations) // 5))


@pytest.mark.slow
def test_every_operation_of_an_export_fails(tmp_path: Path, operations: list[str]) -> None:
    fail_at(tmp_path, range(1, len(operations) + 1))
