"""What hangs on rounding is not called wrong where that is shown; what merely might is."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import torch
from crossing import crossed, errors, stock, verdict
from torch import nn

import torchferry
from torchferry.records import Tolerance, Trial, Verified
from torchferry.verify.judge.excuses.rounding_noise import nudged
from torchferry.verify.run.double_shadow import in_float64


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


def test_calls_that_no_model_need_take_speak_for_no_file() -> None:
    assert not shown("eager-refused", "beyond-range")
    assert shown("eager-refused", "ill-conditioned")
    assert shown("beyond-range", "agree")


class NothingButRounding(nn.Module):
    """Takes one kind of input, and answers with the rounding errors of a long sum."""

    def __init__(self, seen, last: float = 1.0):
        super().__init__()
        self.register_buffer("seen", seen)
        self.weight = nn.Parameter(torch.linspace(-1, last, 4096))
        self.register_buffer("sum", (seen.double() @ torch.linspace(-1, 1, 4096).double()).float())

    def forward(self, x):
        if not torch.allclose(x, self.seen, atol=1e-3):
            raise ValueError("not the kind of input that I know")
        return (x @ self.weight - self.sum) * 1e6


def test_what_is_left_of_a_sum_is_followed_step_by_step(tmp_path: Path) -> None:
    example = (torch.randn(3, 4096, generator=torch.Generator().manual_seed(0)),)
    model, twin = NothingButRounding(example[0]).eval(), NothingButRounding(example[0], last=1.001).eval()
    assert crossed(model, example, tmp_path).ok
    assert errors(verdict(model, example, stock(twin, example, tmp_path / "twin.onnx")))


class Deviation(nn.Module):
    """The deviation of numbers that are all the same: the root of what rounding leaves of a difference."""

    def __init__(self, times: float = 1.0):
        super().__init__()
        self.times = times

    def forward(self, x):
        share = torch.softmax(torch.zeros_like(x), 1)
        mean = (share * x).sum(1)
        return ((share * x**2).sum(1) - mean**2).clamp(min=1e-9).sqrt() * self.times


def test_what_rounding_moves_in_one_direction_alone_is_still_seen_to_be_rounding(tmp_path: Path) -> None:
    same = (torch.full((64, 51), 0.7),)
    assert crossed(Deviation(), same, tmp_path).ok
    assert errors(verdict(Deviation(), same, stock(Deviation(1.1), same, tmp_path / "twin.onnx")))


class Logarithm(nn.Module):
    def __init__(self, nan: bool = False):
        super().__init__()
        self.nan = nan

    def forward(self, x):
        total = x.log().sum(-1)
        return torch.where(total == -torch.inf, torch.nan, total) if self.nan else total


def test_nan_is_not_infinity_rounded(tmp_path: Path) -> None:
    x = (torch.rand(3, 4),)
    assert errors(verdict(Logarithm(), x, stock(Logarithm(nan=True), x, tmp_path / "nan.onnx")))
    assert crossed(Logarithm(), x, tmp_path).ok


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


class Regulated(nn.Module):
    """As many places as the numbers add up to, rounded up: a last bit decides on one more."""

    def __init__(self, more: int = 0):
        super().__init__()
        self.more = more
        self.lin = nn.Linear(8, 1)
        with torch.no_grad():
            self.lin.weight.copy_(torch.randn(1, 8, generator=torch.Generator().manual_seed(0)) / 3)

    def forward(self, x):
        long = torch.clamp(torch.ceil(torch.exp(self.lin(x).squeeze(-1))), 1, 6).long()
        places = torch.arange(int(long.sum(1).max()) + self.more)
        return (places[None, None] < long.cumsum(1).unsqueeze(-1)).to(x.dtype)


def test_a_size_may_hang_on_a_last_bit_and_no_more(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1)),)
    one, other = Regulated().eval(), Regulated(more=1).eval()
    other.load_state_dict(one.state_dict())
    assert torchferry.export(one, example, tmp_path / "right.onnx").ok
    assert torchferry.export(other, example, tmp_path / "wrong.onnx").ok
    assert not verdict(one, example, tmp_path / "wrong.onnx").ok


class Detected(nn.Module):
    def __init__(self, least: float = 0.4) -> None:
        super().__init__()
        self.least = least
        self.score, self.box = nn.Linear(8, 3), nn.Linear(8, 4)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        likeliest = self.score(features).softmax(-1).amax(-1)
        kept = likeliest >= self.least
        return likeliest[kept], self.box(features)[kept]


def test_how_many_are_kept_at_a_threshold_may_hang_on_last_bits_and_on_no_other_threshold(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, other = Detected(), Detected(0.4004)
    other.load_state_dict(model.state_dict())
    example, axes = (torch.randn(12, 8),), {"features": {0: "batch"}}
    assert not errors(verdict(model, example, stock(model, example, tmp_path / "same.onnx", axes)))
    assert errors(verdict(model, example, stock(other, example, tmp_path / "other.onnx", axes)))


class Loss(nn.Module):
    def __init__(self, less: int = 0) -> None:
        super().__init__()
        self.less = less
        self.there, self.back = nn.Linear(6, 4), nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        off = self.back(self.there(x)) - x
        return nn.functional.mse_loss(off, torch.zeros_like(off), reduction="sum") / (off.numel() - self.less)


def test_a_loss_adds_up_and_its_mean_is_over_all(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, other = Loss(), Loss(1)
    other.load_state_dict(model.state_dict())
    example, axes = (torch.randn(4, 6),), {"x": {0: "batch"}}
    assert not errors(verdict(model, example, stock(model, example, tmp_path / "same.onnx", axes)))
    assert errors(verdict(model, example, stock(other, example, tmp_path / "other.onnx", axes)))


class Counted(nn.Module):
    """A bag of tokens: onnxruntime adds their rows one after the other, torch in pairs; of rows alike all errors add up."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.rows, self.gain = nn.Embedding(10, 4), gain
        with torch.no_grad():
            self.rows.weight.copy_(torch.randn(10, 4, generator=torch.Generator().manual_seed(3)))

    def forward(self, i):
        far = (torch.arange(i.shape[1]) >= 100).to(torch.float32)[:, None]
        return (self.rows(i) * (1.0 + (self.gain - 1.0) * far)).sum(1).amax(-1)


def test_a_long_sum_may_lose_what_it_loses_when_taken_in_turn_and_no_more(tmp_path: Path) -> None:
    example = (torch.randint(0, 10, (3, 5), generator=torch.Generator().manual_seed(0)),)
    assert crossed(Counted().eval(), example, tmp_path).ok
    off = stock(Counted(1 + 1e-4).eval(), example, tmp_path / "other.onnx", {"i": {0: "batch", 1: "length"}})
    assert errors(verdict(Counted().eval(), example, off))


def normalised(eps: float = 1e-5) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.InstanceNorm1d(4, eps=eps, affine=True), nn.ReLU()).eval()


def test_a_channel_without_variation_may_hang_on_how_its_mean_is_taken_and_not_on_epsilon(tmp_path: Path) -> None:
    model, example = normalised(), (torch.randn(2, 2, 20, generator=torch.Generator().manual_seed(0)),)
    sizes = {"input": {0: "batch", 2: "length"}}
    assert crossed(model, example, tmp_path, sizes).ok
    off = stock(normalised(2e-5), example, tmp_path / "other.onnx", sizes)
    assert errors(verdict(model, example, off))


class Inverse(nn.Module):
    def __init__(self, ridge: float = 0.0) -> None:
        super().__init__()
        self.ridge = ridge

    def forward(self, x):
        return torch.linalg.inv(x + self.ridge * torch.eye(3))


def test_an_inverse_errs_as_its_matrix_does_and_not_by_a_ridge(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    example = (torch.randn(4, 3, 3, generator=generator) + 3 * torch.eye(3),)
    assert torchferry.export(Inverse().eval(), example, tmp_path / "model.onnx").ok
    torchferry.export(Inverse(1e-4).eval(), example, tmp_path / "other.onnx")
    assert errors(verdict(Inverse().eval(), example, tmp_path / "other.onnx"))


class Variance(nn.Module):
    def __init__(self, how: str = "torch's own") -> None:
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "torch's own":
            return x.var(-1, correction=0)
        mean = x.mean(-1, keepdim=True)
        return (x * x).mean(-1) - mean[:, 0] ** 2 if self.how == "by squares" else ((x - mean) ** 2).mean(-1)


def test_a_variance_may_be_taken_around_another_kernels_mean_and_not_by_squares(tmp_path: Path) -> None:
    example = (torch.randn(3, 40),)
    for how, codes in (("around its mean", []), ("by squares", ["NUM001"])):
        assert errors(verdict(Variance(), example, stock(Variance(how), example, tmp_path / "m.onnx"))) == codes


class Divergence(nn.Module):
    """A single number, of which nothing but rounding is left where both sides are alike."""

    def __init__(self, off: float = 0.0) -> None:
        super().__init__()
        self.head, self.off = nn.Linear(6, 9), off
        with torch.no_grad():
            self.head.weight.copy_(torch.randn(9, 6, generator=torch.Generator().manual_seed(5)) / 2)
            self.head.bias.copy_(torch.randn(9, generator=torch.Generator().manual_seed(6)) / 2)

    def forward(self, x, y):
        return nn.functional.kl_div(self.head(x).log_softmax(-1), self.head(y).softmax(-1), reduction="batchmean") + self.off


def test_what_is_left_of_a_loss_is_rounding_and_a_constant_beside_it_is_not(tmp_path: Path) -> None:
    example = tuple(torch.randn(3, 6, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
    assert crossed(Divergence(), example, tmp_path).ok
    assert errors(verdict(Divergence(), example, stock(Divergence(1e-5), example, tmp_path / "other.onnx")))


class Encoded(nn.Module):
    """In eval mode this encoder cuts the padding off, and computes with rows of unlike lengths in kernels of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)

    def forward(self, x, padding):
        return (self.inner(x, src_key_padding_mask=padding),)


def test_rows_of_unlike_lengths_have_a_float64_run_and_roundings_like_any_other_numbers() -> None:
    torch.manual_seed(0)
    model, x = Encoded().eval(), torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([5, 3, 1])[:, None]
    with torch.no_grad():
        want = copy.deepcopy(model).double()(x.double(), padding)[0]
    (shadow,) = in_float64(model, (x, padding)) or (None,)
    assert shadow is not None
    assert np.abs(shadow - want.numpy()).max() < 1e-12
    one, two = (nudged(model, (x, padding), seed)[0] for seed in (0, 1))
    assert (one != two)[~padding.numpy()].any(axis=1).all()  # every token has some number moved
