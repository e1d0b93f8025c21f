"""Choices that hang on rounding are not called wrong; wrong choices are, and rounding alone speaks for no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from crossing import crossed, errors, stock, verdict
from torch import nn

from torchferry.records import Tolerance, Trial, Verified
from torchferry.verify.judge.excuses.rounding import ill_conditioned

NEAR = 1.0 + 2.0**-23  # the next number after one


class Choice(nn.Module):
    """The larger of two sums that are equal but for rounding, and one that is far larger than another."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.tensor([1.0, 5.0]))
        self.two = nn.Parameter(torch.tensor([NEAR, 1.0]))

    def forward(self, ids):
        return (torch.stack([self.one, self.two]).tanh()[:, ids].argmax(0),)


def explained(module: nn.Module, args: tuple[torch.Tensor, ...], got: np.ndarray) -> bool:
    want = [o.numpy() for o in module(*args)]
    return ill_conditioned(module, args, want, [got], exact=False, rounds=True)


def test_a_choice_that_flips_when_weights_are_nudged_is_rounding_even_with_whole_number_inputs() -> None:
    module, args = Choice(), (torch.tensor([0, 1]),)
    want = module(*args)[0].numpy()
    assert explained(module, args, np.stack([1 - want[0], want[1]]))


def test_a_choice_that_does_not_flip_is_wrong_however_many_others_do() -> None:
    module, args = Choice(), (torch.tensor([0, 1, 0, 0]),)
    want = module(*args)[0].numpy()
    assert not explained(module, args, np.stack([want[0], 1 - want[1], want[2], want[3]]))
    assert not explained(module, args, 1 - want)


class Rounded(nn.Module):
    def __init__(self, mode: str = "round"):
        super().__init__()
        self.lin, self.mode = nn.Linear(64, 64), mode
        with torch.no_grad():
            generator = torch.Generator().manual_seed(0)
            self.lin.weight.copy_(torch.randn(64, 64, generator=generator))

    def forward(self, x):
        y = self.lin(x) / 0.001
        return (torch.round(y) if self.mode == "round" else torch.floor(y)) * 0.001


def test_steps_that_eager_takes_too_when_nudged_are_rounding() -> None:
    module, args = Rounded(), (torch.randn(4, 64, generator=torch.Generator().manual_seed(1)),)
    want = module(*args).detach().numpy()
    with torch.no_grad():
        values = module.lin(args[0]).numpy() / 0.001
    near = np.abs(values - np.floor(values) - 0.5)  # how far from the step
    got = want.copy()
    nearest = np.unravel_index(near.argmin(), near.shape)
    got[nearest] += 0.001 if values[nearest] - np.floor(values[nearest]) < 0.5 else -0.001
    flat = nn.Module()
    flat.forward = lambda x: (module(x),)  # type: ignore[method-assign]
    flat.inner = module
    assert ill_conditioned(flat, args, [want], [got], exact=False, rounds=True)
    assert not ill_conditioned(flat, args, [want], [want + np.float32(0.001)], exact=False, rounds=True)
    assert not ill_conditioned(flat, args, [want], [np.where(near == near.min(), want + 0.5, want)], exact=False, rounds=True)


def test_a_model_that_rounds_passes_and_one_that_rounds_otherwise_does_not(tmp_path: Path) -> None:
    one, other = Rounded().eval(), Rounded("floor").eval()
    other.load_state_dict(one.state_dict())
    example = (torch.randn(4, 64),)
    assert crossed(one, example, tmp_path).ok
    assert errors(verdict(one, example, stock(other, example, tmp_path / "other.onnx")))


def test_the_largest_along_another_axis_is_wrong(tmp_path: Path) -> None:
    class Largest(nn.Module):
        def __init__(self, axis):
            super().__init__()
            self.lin, self.axis = nn.Linear(6, 6), axis

        def forward(self, x):
            return self.lin(x).argmax(self.axis)

    one, other = Largest(1).eval(), Largest(2).eval()
    other.load_state_dict(one.state_dict())
    example = (torch.randn(2, 6, 6),)
    assert crossed(one, example, tmp_path).ok
    assert errors(verdict(one, example, stock(other, example, tmp_path / "other.onnx")))


def shown(*outcomes: str) -> bool:
    trials = tuple(Trial("t", {}, "random", 0, o) for o in outcomes)  # type: ignore[arg-type]
    return Verified(trials, Tolerance(1e-5, 1e-5, "test")).shown


def test_trials_that_are_only_rounding_speak_for_no_file() -> None:
    assert not shown("ill-conditioned", "ill-conditioned")
    assert not shown("ill-conditioned", "eager-refused", "beyond-range")
    assert shown("ill-conditioned", "agree")


class NothingButRounding(nn.Module):
    """Takes one kind of input, and answers with the rounding errors of a long sum."""

    def __init__(self, seen):
        super().__init__()
        self.register_buffer("seen", seen)
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4096))
        self.register_buffer("sum", (seen.double() @ self.weight.detach().double()).float())

    def forward(self, x):
        if not torch.allclose(x, self.seen, atol=1e-3):
            raise ValueError("not the kind of input that I know")
        return (x @ self.weight - self.sum) * 1e6


def test_a_file_with_nothing_but_rounding_is_not_called_verified(tmp_path: Path) -> None:
    example = (torch.randn(3, 4096, generator=torch.Generator().manual_seed(0)),)
    result = crossed(NothingButRounding(example[0]).eval(), example, tmp_path)
    assert not result.ok
    assert errors(result) == ["NUM021"]


class Gate(nn.Module):
    """A gate that is all but shut, times numbers that are far apart: what is left of it is rounding."""

    def __init__(self, shut: bool):
        super().__init__()
        self.shut, self.gain = shut, nn.Parameter(torch.full((4,), 1e6))

    def forward(self, x):
        return (nn.functional.silu(x) * self.gain * (0.5 if self.shut else 1.0),)


def test_a_bounded_function_may_be_a_unit_of_its_range_off_and_no_more() -> None:
    far = torch.full((2, 4), -1000.0)
    want = [Gate(False)(far)[0].detach().numpy()]
    leak = [want[0] - 1.5e-5 * 1e6]  # a sigmoid that stops at 1.5e-8
    assert ill_conditioned(Gate(False), (far,), want, leak, exact=False, rounds=False)
    near = torch.full((2, 4), 1.0)
    pair = [[Gate(shut)(near)[0].detach().numpy()] for shut in (False, True)]
    assert not ill_conditioned(Gate(False), (near,), *pair, exact=False, rounds=False)


class Deviation(nn.Module):
    """The deviation of numbers that are all the same: the root of what rounding leaves of a difference."""

    def forward(self, x):
        share = torch.softmax(torch.zeros_like(x), 1)
        mean = (share * x).sum(1)
        return (((share * x**2).sum(1) - mean**2).clamp(min=1e-9).sqrt(),)


def test_what_rounding_moves_in_one_direction_alone_is_still_seen_to_be_rounding() -> None:
    module, args = Deviation(), (torch.full((64, 51), 0.7),)
    want = module(*args)[0].numpy()
    file = np.full_like(want, np.sqrt(4e-8))  # 4e-8: half a unit in the last place of 0.49
    assert ill_conditioned(module, args, [want], [file], exact=False, rounds=False)
    assert not ill_conditioned(module, args, [want], [file * 100], exact=False, rounds=False)
    assert not ill_conditioned(module, args, [want], [np.where(np.arange(64) == 9, 0.5, file)], exact=False, rounds=False)


class Logarithm(nn.Module):
    def forward(self, x):
        return x.log().sum(-1)


def test_nan_is_not_infinity_rounded() -> None:
    args = (torch.tensor([[0.0, 1.0], [2.0, 3.0]]),)
    want = Logarithm()(*args).numpy()
    got = np.where(np.isinf(want), np.nan, want)
    assert not ill_conditioned(Logarithm(), args, [want], [got.astype(np.float32)], exact=False, rounds=False)


class RoundedFirst(nn.Module):
    """Rounds numbers that nothing was done to but what is exact, and only then computes with them."""

    def __init__(self, up: bool) -> None:
        super().__init__()
        self.up, self.fc = up, nn.Linear(2, 2)

    def forward(self, x):
        whole = torch.floor(x * 2 + 0.5) if self.up else torch.round(x * 2)
        return self.fc(whole / 2)


def test_a_half_that_is_exact_has_one_right_rounding(tmp_path: Path) -> None:
    torch.manual_seed(0)
    even, up = RoundedFirst(up=False), RoundedFirst(up=True)
    up.load_state_dict(even.state_dict())
    args = (torch.randn(4, 2),)
    assert verdict(even, args, stock(even, args, tmp_path / "even.onnx")).ok
    assert not verdict(even, args, stock(up, args, tmp_path / "up.onnx")).ok


class Shortened(nn.Module):
    """Its embedding shortens its own long rows where it looks them up, through a detached view of them."""

    def __init__(self, longest: float | None) -> None:
        super().__init__()
        self.rows = nn.Embedding(20, 6, max_norm=longest)

    def forward(self, ids):
        return self.rows(ids).sum(-1)


def test_what_a_model_writes_through_a_view_is_there_when_it_is_nudged(tmp_path: Path) -> None:
    short, long = Shortened(1.0), Shortened(None)
    long.load_state_dict(short.state_dict())
    args = (torch.tensor([[1, 2], [3, 4]]),)
    assert not verdict(short, args, stock(long, args, tmp_path / "long.onnx")).ok
