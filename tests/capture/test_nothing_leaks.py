"""A capture changes globals of Python, numpy and torch; afterwards they are as before, also after failure and Ctrl-C."""

from __future__ import annotations

import math
import random
import sys
import threading

import numpy as np
import pytest
import torch
from bound import bound, captured
from torch import nn
from torch._dynamo.eval_frame import TorchPatcher
from torch._dynamo.variables.higher_order_ops import ScanHigherOrderVariable
from torch.distributions import Distribution
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import torchferry
from torchferry import eager
from torchferry.capture import patches
from torchferry.capture.rewrites import eager_values

TorchPatcher.patch()  # torch's own changes to itself, made once, when dynamo is first used


class Fingerprint:
    """The identity of everything that a patch may touch; what torch loads or compiles later on is not in it."""

    def __init__(self) -> None:
        hops = (torch._higher_order_ops, sys.modules["torch._higher_order_ops.cond"], ScanHigherOrderVariable)
        owners = (math, np, np.random, random, torch, torch.onnx, torch.compiler, torch.jit, torch.func, ShapeEnv, *hops)
        named = ((o, k, v) for o in owners for k, v in vars(o).items() if callable(v) and not k.startswith("__compiled_fn"))
        self.table = {(o.__name__, k): id(v) for o, k, v in named}
        self.here = sorted(k for k in vars(sys.modules[__name__]) if k in ("int", "float", "len", "max", "min", "sum", "round"))
        self.tensor = sorted(vars(torch.Tensor))
        self.code = [id(c.forward.__code__) for c in (Fine, Failing, Branching, Stuck)]
        modes = tuple(map(id, torch.overrides._get_current_function_mode_stack()))
        casting = torch.is_autocast_enabled("cpu")
        self.flags = (Distribution._validate_args, torch.is_grad_enabled(), casting, modes, len(eager_values._in_use))

    def __eq__(self, later: object) -> bool:
        assert isinstance(later, Fingerprint)
        same = all(later.table.get(key) == value for key, value in self.table.items())
        return same and (self.here, self.tensor, self.code, self.flags) == (
            later.here,
            later.tensor,
            later.code,
            later.flags,
        )

    __hash__ = None


class Fine(nn.Module):
    def forward(self, x):
        return x * int(x.shape[0] * 0.5)


class Failing(nn.Module):
    def forward(self, x):
        return x * len("x" * int(x.argmax()))


class Branching(nn.Module):
    """Its source is rewritten in memory for the capture."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class Stuck(nn.Module):
    """A line of it can be rewritten, another cannot be captured."""

    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        return torch.tensor(np.sort(x.numpy()))


class Interrupted(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt


@pytest.mark.parametrize("model", [Fine(), Failing(), Branching(), Stuck()])
def test_globals_are_as_before_after_success_and_failure(model: nn.Module) -> None:
    before = Fingerprint()
    captured(bound(model, (torch.rand(4),), {0: {0: "n"}}))
    assert before == Fingerprint()


def test_globals_are_as_before_after_an_interruption() -> None:
    before = Fingerprint()
    with pytest.raises(KeyboardInterrupt):
        captured(bound(Interrupted(), (torch.rand(4),), {0: {0: "n"}}))
    assert before == Fingerprint()


def test_captures_in_threads_take_turns() -> None:
    before = Fingerprint()
    steps = []

    def work() -> None:
        steps.append(captured(bound(Fine(), (torch.rand(4),), {0: {0: "n"}})))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(step.value is not None for step in steps)
    assert before == Fingerprint()


def test_exports_in_threads_leave_no_rewrite_and_no_patch_behind() -> None:
    before = Fingerprint()
    results = {}

    def work(name: str, model: nn.Module) -> None:
        results[name] = torchferry.export(model.eval(), (torch.rand(4),), check=False)

    models = {"one": Branching(), "two": Branching(), "failing": Failing()}
    threads = [threading.Thread(target=work, args=item) for item in models.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: result.ok for name, result in results.items()} == {"one": True, "two": True, "failing": False}
    assert before == Fingerprint()


def test_every_patch_lets_plain_numbers_through() -> None:
    with patches.active(Fine(), []):
        assert (math.sqrt(9.0), np.prod([2, 3]), math.log(8, 2), np.maximum(1, 2)) == (3.0, 6, 3.0, 2)
        assert int("7") == 7
        assert isinstance(3, int)
        assert max([3, 5]) == 5
        assert torch.tensor([1, 2]).tolist() == [1, 2]


def test_an_error_inside_an_autocast_block_leaves_autocast_as_it_was() -> None:
    def fail() -> None:
        torch.set_autocast_enabled("cpu", True)  # as torch's captured blocks do, without a way out
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"), eager.balanced():
        fail()
    assert not torch.is_autocast_enabled("cpu")
