"""Fixtures of the command line's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchferry.cli.main import main

MODELS = """
import ctypes
import time
import torch
from torch import nn

print("printed while loading")


class Fine(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        print("printed in forward")
        return self.linear(x)


class Other(Fine):
    def forward(self, x):
        return self.linear(x) * 1.01


class Crash(nn.Module):
    def forward(self, x):
        return ctypes.string_at(0)


class Slow(Fine):
    def forward(self, x):
        time.sleep(0.5)
        return self.linear(x)


class Hang(nn.Module):
    def forward(self, x):
        library, lock = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        library.pthread_mutex_lock(lock)
        return library.pthread_mutex_lock(lock)  # a deadlock in native code: no signal ends it


def made(kind):
    torch.manual_seed(0)
    return kind().eval(), (torch.ones(2, 3),)


def fine(): return made(Fine)
def other(): return made(Other)
def crash(): return made(Crash)
def slow(): return made(Slow)
def hang(): return made(Hang)
def with_kwargs(): return Fine(), (), {"x": torch.ones(2, 3)}
def alone(): return Fine()
def raises(): raise RuntimeError("no weights here")
def needs(weights): return Fine()
def odd(): return Fine(), 1, 2, 3
def nothing(): return None
def weights(): return {"state_dict": Fine().state_dict()}
instance = Fine()
number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a file of models in it."""
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("models", "table", "broken", "importer"):
        sys.modules.pop(name, None)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a command in this process and return its exit code."""
    monkeypatch.setenv("TORCHFERRY_SUPERVISE", "0")
    for name in ("CI", "GITHUB_ACTIONS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: main(words)
