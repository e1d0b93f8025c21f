"""How much is allowed follows from what the model does, with the reason in words, and has a ceiling."""

from __future__ import annotations

import torch
from torch import nn

from torchferry.records import Tolerance
from torchferry.verify.judge.tolerance import derive
from torchferry.verify.run.eager_trace import record
from torchferry.verify.run.repeated_calls import character


def allowed(module: nn.Module, *args: torch.Tensor) -> Tolerance:
    return derive(record(Flat(module), args).notes)


class Flat(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args):
        out = self.model(*args)
        return out if isinstance(out, tuple) else (out,)


def test_a_single_op_is_allowed_what_torch_testing_allows() -> None:
    tolerance = allowed(nn.ReLU(), torch.randn(3))
    assert (tolerance.rtol, tolerance.atol) == (1.3e-6, 1e-5)
    assert "no sums" in tolerance.because


def test_longer_sums_are_allowed_more_and_say_so() -> None:
    short, long = allowed(nn.Linear(4, 1), torch.randn(2, 4)), allowed(nn.Linear(4096, 1), torch.randn(2, 4096))
    assert short.rtol < long.rtol
    assert "4096" in long.because


def test_no_float32_model_is_allowed_more_than_a_thousandth() -> None:
    deep = nn.Sequential(*[nn.Linear(256, 256) for _ in range(40)])
    tolerance = allowed(deep, torch.randn(2, 256))
    assert tolerance.rtol <= 1e-3
    assert tolerance.atol <= 1e-4


def test_half_precision_inside_is_noticed() -> None:
    class Half(nn.Module):
        def forward(self, x):
            return (x.half() * 2).float()

    assert "float16" in allowed(Half(), torch.randn(3)).because


def test_the_tape_names_the_module_and_the_users_line() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)

        def forward(self, x):
            return self.first(x)

    note = record(Flat(Net()), (torch.randn(2, 3),), prefix="model.").notes[-1]
    assert note.location.file == __file__
    assert note.location.module_path == "first"


def test_randomness_and_state_are_told_apart() -> None:
    class Dice(nn.Module):
        def forward(self, x):
            return (x + torch.rand(1), x * 2)

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return (x * self.n,)

    x = (torch.ones(2),)
    for model, random, stateful in ((Dice(), (True, False), (False, False)), (Counter(), (False,), (True,))):
        import copy

        used = copy.deepcopy(model)
        tape = record(used, x)
        habits = character(model, used, tape.outputs, [x])
        assert (habits.random, habits.stateful) == (random, stateful)
