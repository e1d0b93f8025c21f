"""All that is wrong with a model is told in one go, each problem once, at its line, in the order in which forward meets it."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from torchferry.pipeline import run
from torchferry.records import Diagnosis, Job


class Three(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = x + torch.from_numpy(np.interp(x.detach().numpy(), [-1.0, 1.0], [0.0, 1.0])).float()  # the first
        rows = torch.nested.nested_tensor([x[0], x[1][:2]])  # the second
        y = torch.nested.to_padded_tensor(self.fc(rows), 0.0)
        left, kept = y.sum(-1).flatten().argsort(), []
        while left.numel() > 0:  # the third
            kept.append(left[0])
            left = left[1:][left[1:] > left[0]]
        return y * torch.stack(kept).sum()


class One(nn.Module):
    """All that its loop does with the data follows from the loop."""

    def forward(self, x):
        left, kept = x.sum(-1).argsort(), []
        while left.numel() > 0:  # the only one
            best, rest = left[0], left[1:]
            kept.append(best)
            left = rest[(x[best] - x[rest]).abs().sum(-1) > 0.5]
        return x[torch.stack(kept)]


class BranchAfterNumpy(nn.Module):
    def forward(self, x):
        middle = float(np.median(x.numpy()))  # the first
        if x.mean() > middle:  # the second
            return x * 2
        return x - middle


def problems(model: nn.Module, *args: torch.Tensor) -> list[Diagnosis]:
    return [d for d in run(Job(model.eval(), args)).diagnoses if d.severity == "error"]


def lines(model: nn.Module, *words: str) -> list[int]:
    source, first = inspect.getsourcelines(type(model))
    return [first + n for word in words for n, line in enumerate(source) if line.rstrip().endswith(f"# {word}")]


def test_three_problems_are_three_diagnoses_in_the_order_of_the_code() -> None:
    found = problems(Three(), torch.randn(2, 5, 4))
    assert [d.code for d in found] == ["CAP013", "CAP057", "CAP003"]
    assert [d.location.line for d in found] == lines(Three(), "the first", "the second", "the third")


def test_one_problem_is_one_diagnosis() -> None:
    found = problems(One(), torch.randn(6, 3))
    assert [(d.code, d.location.line) for d in found] == [("CAP003", *lines(One(), "the only one"))]


def test_what_lies_beyond_a_line_that_cannot_be_captured_is_found() -> None:
    found = problems(BranchAfterNumpy(), torch.randn(3, 4))
    assert [d.location.line for d in found] == lines(BranchAfterNumpy(), "the first", "the second")


FIRST = """import torch
from torch import nn
class Counts(nn.Module):
    def forward(self, x):
        return x * len({int(v) for v in x.argmax(-1)})
"""
SECOND = """import numpy as np
import torch
def histogram(x):
    return torch.from_numpy(np.histogram(x.numpy(), bins=4)[0]).sum()
"""
THIRD = """from torch import nn
import problem_first, problem_second
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.counts = nn.Linear(4, 4), problem_first.Counts()
    def forward(self, x):
        x = self.counts(self.fc(x))
        x = x + problem_second.histogram(x)
        if x.sum() > 3:
            x = x / 2
        return x
"""


def test_problems_in_three_files_are_told_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"problem_first": FIRST, "problem_second": SECOND, "problem_third": THIRD}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = importlib.import_module("problem_third").Whole()
    found = [(Path(d.location.file or "").stem, d.location.line) for d in problems(model, torch.randn(2, 4))]
    assert found == [("problem_first", 5), ("problem_second", 4), ("problem_third", 10)]
