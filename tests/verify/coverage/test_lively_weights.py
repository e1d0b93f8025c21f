"""With redrawn weights right files still agree in every form, and faults that the user's own weights hide are seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from exported import FORMS, bench_of, changed, scripted, traced
from torch import nn

import torchferry
from torchferry.records import Coverage
from torchferry.result import Result
from torchferry.verify.coverage.lively import lively, redrawable
from torchferry.verify.coverage.weights import weights
from torchferry.verify.judge.trial import judge
from torchferry.verify.trials.plans import TrialPlan

IDS = (torch.randint(0, 30, (2, 5)),)
ROWS = (torch.randn(4, 8),)


class Attention(nn.Module):
    """As fresh as transformers makes it: weights of 0.02, so that attention is flat."""

    scale, eps, approximate = 0.5, 1e-5, "none"

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.qkv = nn.Embedding(30, 8), nn.LayerNorm(8), nn.Linear(8, 24)
        self.out, self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(16, 8)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, x):
        h = self.table(x)
        q, k, v = self.qkv(F.layer_norm(h, (8,), self.norm.weight, self.norm.bias, self.eps)).chunk(3, -1)
        h = h + self.out((q @ k.transpose(1, 2) * self.scale).softmax(-1) @ v)
        return h + self.down(F.gelu(self.up(h), approximate=self.approximate))


class Gate(nn.Module):
    """Nothing ever passes."""

    sign = 1.0

    def __init__(self):
        super().__init__()
        self.score, self.box = nn.Linear(8, 1), nn.Linear(8, 4)
        nn.init.constant_(self.score.bias, -9.0)
        nn.init.normal_(self.score.weight, std=1e-3)

    def forward(self, x):
        return (self.sign * self.box(x))[self.score(x).squeeze(-1) > 0]


class Zeroed(nn.Module):
    """The last layer starts at zero, as in many diffusion models."""

    sign = 1.0

    def __init__(self):
        super().__init__()
        self.body, self.last = nn.Linear(8, 8), nn.Linear(8, 4)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x):
        return self.last(self.sign * self.body(x).tanh())


class Tempered(nn.Module):
    """A scalar weight as it is, and its logarithm, which exporters fold to a number."""

    def __init__(self):
        super().__init__()
        self.heat, self.out = nn.Parameter(torch.tensor(0.73)), nn.Linear(8, 5)

    def forward(self, x):
        return (self.out(x) / self.heat).softmax(-1) + self.heat.log()


class Narrow(nn.Module):
    """Normalisations of two channels: what is folded of them is too small to be told by its numbers."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.norm(self.conv(x[:, None])).relu()


class Sorted(nn.Module):
    def __init__(self):
        super().__init__()
        self.knots, self.table = nn.Parameter(torch.linspace(-2, 2, 9)), nn.Embedding(10, 4)

    def forward(self, x):
        return self.table((x[..., None] > self.knots).sum(-1))


class Decided(nn.Module):
    def __init__(self):
        super().__init__()
        self.switch, self.out = nn.Parameter(torch.tensor(-1.0)), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(x) if float(self.switch) > 0 else self.out(x) * 2


class Cloned(nn.Module):
    """Two layers that start equal: a file may keep their weights once."""

    def __init__(self):
        super().__init__()
        one = nn.Linear(8, 8)
        self.layers = nn.ModuleList([one, copy.deepcopy(one)])

    def forward(self, x):
        return self.layers[1](self.layers[0](x).tanh())


def verified(
    model: nn.Module, twin: nn.Module, args: tuple[Any, ...], path: Path, form: Callable[..., Path] = scripted
) -> Result:
    return torchferry.verify(model, form(twin.eval(), args, path), args, check=False)


def shown(result: Result) -> Coverage:
    return result.history.best.value("verify").coverage  # type: ignore[no-any-return]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("build", [Attention, Zeroed, Tempered, Narrow, Sorted, Decided, Cloned])
def test_a_right_file_agrees_with_redrawn_weights(build: type[nn.Module], form: Callable[..., Path], tmp_path: Path) -> None:
    if build is Decided and form is traced:
        pytest.skip("the new exporter does not take a branch on a weight")
    model, args = build().eval(), IDS if build is Attention else ROWS
    with bench_of(model, args, form(model, args, tmp_path / "m.onnx")) as bench:
        known = weights(bench.sides)
        which = redrawable(known, bench.sides.bound)
        assert which.groups, which.why_not
        for draw in (1, 2):
            with lively(bench, known, which, draw) as redrawn:
                assert not isinstance(redrawn, str), redrawn
                again = judge(redrawn, TrialPlan({}, "example", given=args), args)
                assert again.trial.outcome == "agree", again.trial.differences
                own = bench.sides.eager(args)
                assert not all(np.allclose(a, b) for a, b in zip(own, again.want, strict=True))  # they are other weights


HIDDEN = {
    "attention not scaled": (Attention, {"scale": 1.0}),
    "another epsilon": (Attention, {"eps": 1e-2}),
    "tanh for erf in a gelu": (Attention, {"approximate": "tanh"}),
    "a sign behind a gate": (Gate, {"sign": -1.0}),
    "a sign before zeros": (Zeroed, {"sign": -1.0}),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_what_the_users_weights_hide_is_seen(what: str, tmp_path: Path) -> None:
    build, attributes = HIDDEN[what]
    model = build().eval()
    twin = copy.deepcopy(model)
    for name, value in attributes.items():
        setattr(twin, name, value)
    result = verified(model, twin, IDS if build is Attention else ROWS, tmp_path / "m.onnx")
    assert not result.ok
    assert any(t.outcome == "differ" for t in result.trials)


@pytest.mark.parametrize("build", [Attention, Gate, Zeroed], ids=lambda b: b.__name__)
def test_the_right_file_of_a_sleeping_model_is_verified(build: type[nn.Module], tmp_path: Path) -> None:
    model = build().eval()
    result = verified(model, model, IDS if build is Attention else ROWS, tmp_path / "m.onnx")
    assert result.ok, result
    assert shown(result).redrawn
    assert shown(result).varied == shown(result).outputs == 1


def test_the_users_weights_are_left_alone(tmp_path: Path) -> None:
    model = Attention().eval()
    before = copy.deepcopy(model.state_dict())
    assert verified(model, model, IDS, tmp_path / "m.onnx", traced).ok
    assert all(bool((before[n] == t).all()) for n, t in model.state_dict().items())


def test_weights_that_are_not_all_known_are_not_redrawn_and_that_is_told(tmp_path: Path) -> None:
    class Adapted(nn.Module):
        merged = False

        def __init__(self):
            super().__init__()
            self.body, self.down, self.up = nn.Linear(8, 8), nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

        def forward(self, x):
            if self.merged:
                return x @ self.whole + self.body.bias
            return self.body(x) + self.up(self.down(x))

    model = Adapted().eval()
    twin = copy.deepcopy(model)
    twin.merged, twin.whole = True, (model.body.weight + model.up.weight @ model.down.weight).T.detach()
    result = verified(model, twin, ROWS, tmp_path / "m.onnx")
    assert result.ok, result  # it is right, and every row of the merged weight is noticed
    assert shown(result).reached == 1
    assert any("is not among the model's own numbers" in words for words in shown(result).not_done)


def test_a_sign_that_only_redrawn_weights_show_can_be_reproduced(tmp_path: Path) -> None:
    model = Zeroed().eval()
    result = verified(model, changed(model, lambda t: setattr(t, "sign", -1.0)), ROWS, tmp_path / "m.onnx")
    assert [t.weights for t in result.trials if t.outcome == "differ"]
    script = result.reproducer(tmp_path / "shown")
    assert script is not None
    data = np.load(script.with_name("trial.npz"))
    assert any(name.startswith("out:") and np.abs(data[name]).max() > 0 for name in data.files)
