"""A capture changes globals of Python, numpy and torch; afterwards they are as before, also after failure and Ctrl-C."""

from __future__ import annotations

import math
import random
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch
from bound import bound, captured
from torch import nn
from torch.distributions import Distribution
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from torchferry.capture import patches


def fingerprint() -> tuple[Any, ...]:
    """Return the identity of everything that a patch may touch."""
    owners = (math, np, np.random, random, torch, torch.onnx, torch.compiler, torch.jit, ShapeEnv)
    tables = tuple(tuple(sorted((k, id(v)) for k, v in vars(o).items() if callable(v))) for o in owners)
    here = tuple(sorted(k for k in vars(sys.modules[__name__]) if k in ("int", "float", "len", "max", "min")))
    return (*tables, here, Distribution._validate_args, torch.is_grad_enabled())


class Fine(nn.Module):
    def forward(self, x):
        return x * int(x.shape[0] * 0.5)


class Failing(nn.Module):
    def forward(self, x):
        return x * len("x" * int(x.argmax()))


class Interrupted(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt


@pytest.mark.parametrize("model", [Fine(), Failing()])
def test_globals_are_as_before_after_success_and_failure(model: nn.Module) -> None:
    before = fingerprint()
    captured(bound(model, (torch.rand(4),), {0: {0: "n"}}))
    assert fingerprint() == before


def test_globals_are_as_before_after_an_interruption() -> None:
    before = fingerprint()
    with pytest.raises(KeyboardInterrupt):
        captured(bound(Interrupted(), (torch.rand(4),), {0: {0: "n"}}))
    assert fingerprint() == before


def test_captures_in_threads_take_turns() -> None:
    before = fingerprint()
    steps = []

    def work() -> None:
        steps.append(captured(bound(Fine(), (torch.rand(4),), {0: {0: "n"}})))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(step.value is not None for step in steps)
    assert fingerprint() == before


def test_every_patch_lets_plain_numbers_through() -> None:
    with patches.active(Fine(), []):
        assert (math.sqrt(9.0), np.prod([2, 3]), math.log(8, 2), np.maximum(1, 2)) == (3.0, 6, 3.0, 2)
        assert int("7") == 7
        assert isinstance(3, int)
        assert max([3, 5]) == 5
        assert torch.tensor([1, 2]).tolist() == [1, 2]
