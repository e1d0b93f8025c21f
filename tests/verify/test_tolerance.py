"""How much is allowed is measured from eager's own rounding errors, in units of each output's spread, and has a ceiling."""

from __future__ import annotations

from pathlib import Path

import torch
from crossing import errors, stock, verdict
from torch import nn

from torchferry.records import Tolerance
from torchferry.verify.judge.tolerance import MOST, UNITS, measure
from torchferry.verify.run.eager_trace import record
from torchferry.verify.run.repeated_calls import character


def allowed(module: nn.Module, *args: torch.Tensor) -> Tolerance:
    return measure(Flat(module), [args])[0]


class Flat(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args):
        out = self.model(*args)
        return out if isinstance(out, tuple) else (out,)


def test_what_rounds_nothing_is_allowed_some_units_in_the_last_place() -> None:
    tolerance = allowed(nn.ReLU(), torch.randn(3, 8))
    assert tolerance.rtol == UNITS * 2.0**-23
    assert tolerance.share == 2.0**-23
    assert "nothing is rounded" in tolerance.because


def test_longer_sums_are_allowed_more_and_say_what_was_seen() -> None:
    torch.manual_seed(0)
    short, long = allowed(nn.Linear(4, 8), torch.randn(9, 4)), allowed(nn.Linear(4096, 8), torch.randn(9, 4096))
    assert short.share < long.share
    assert "of the spread" in long.because


def test_no_float32_model_is_waved_through_with_more_than_a_ten_thousandth_of_its_spread() -> None:
    class Chaotic(nn.Module):
        def forward(self, x):
            for _ in range(60):
                x = 3.99 * x * (1 - x)
            return x

    assert allowed(Chaotic(), torch.rand(8, 8)).share <= max(MOST["float32"], MOST["float16"])
    assert allowed(nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]), torch.randn(8, 64)).share <= MOST["float32"]


def test_half_precision_is_measured_where_it_is_and_nowhere_else() -> None:
    class Both(nn.Module):
        def forward(self, x):
            return (x.half() * 1.1).float(), x * 1.1

    half, full = measure(Flat(Both()), [(torch.randn(8, 8),)])
    assert half.share > 100 * full.share


class Scaled(nn.Module):
    """Answers of any unit, with or without an offset."""

    def __init__(self, gain: float, offset: float = 0.0):
        super().__init__()
        self.gain, self.offset, self.lin = gain, offset, nn.Linear(16, 4)
        with torch.no_grad():
            self.lin.weight.copy_(torch.randn(4, 16, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        return self.offset + self.gain * torch.tanh(self.lin(x))


def test_a_signal_is_held_to_its_own_size_whatever_its_unit_and_whatever_it_stands_on(tmp_path: Path) -> None:
    x = (torch.randn(6, 16),)
    for gain, offset in ((1e-6, 0.0), (1e-12, 0.0), (0.05, 300.0), (1e6, 0.0)):
        model, twin = Scaled(gain, offset), Scaled(1.01 * gain, offset)
        twin.load_state_dict(model.state_dict())
        assert verdict(model, x, stock(model, x, tmp_path / "same.onnx")).ok, (gain, offset)
        assert errors(verdict(model, x, stock(twin, x, tmp_path / "twin.onnx"))), (gain, offset)


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
        trace = record(used, x)
        habits = character(model, used, trace.outputs, [x])
        assert (habits.random, habits.stateful) == (random, stateful)
