"""TorchScript is carried across as it is: loops that are left early, frozen modules, archives from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import torchferry

QUICK = torchferry.Budget(trials=8, mutants=0)
X = torch.randn(2, 4)


class LeftByCount(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        step = 0
        while True:
            x = torch.tanh(self.fc(x))
            step += 1
            if step >= 3:
                break
        return x


class LeftByValue(nn.Module):
    """How many rounds there are hangs on the numbers; the last of them changes them still."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rounds = 0
        for step in range(6):
            x = torch.tanh(self.fc(x)) + 0.5
            rounds = step
            if bool(x.sum() > 2.0):
                break
        return x * rounds


class EndsByValueAlone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while bool(x.sum() < 10.0):
            x = x + 1
        return x


@pytest.mark.parametrize("model", [LeftByCount(), LeftByValue()], ids=lambda m: type(m).__name__)
def test_a_loop_with_a_break_goes_as_many_rounds_as_in_the_script(model: nn.Module) -> None:
    script = torch.jit.script(model.eval())
    result = torchferry.export(script, (X,), budget=QUICK)
    for scale in (0.1, 1.0, 10.0, -3.0):
        torch.testing.assert_close(result(X * scale)[0], model(X * scale), rtol=1e-4, atol=1e-5)


def test_a_loop_that_a_value_alone_ends_is_refused_and_said() -> None:
    with pytest.raises(torchferry.ExportError, match=r"no number ends\s+it"):
        torchferry.export(torch.jit.script(EndsByValueAlone()), (X,), budget=QUICK)


def test_a_frozen_script_and_one_from_an_archive_are_exported(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU()).eval()
    torch.jit.script(model).save(str(tmp_path / "model.pt"))
    loaded = torch.jit.load(str(tmp_path / "model.pt"))
    for script in (loaded, torch.jit.freeze(loaded)):
        result = torchferry.export(script, (X,), budget=QUICK)
        torch.testing.assert_close(result(X)[0], model(X), rtol=1e-4, atol=1e-5)
