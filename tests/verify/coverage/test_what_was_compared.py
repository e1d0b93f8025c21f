"""Trials that agree count for nothing where they compared nothing: weights, outputs and inputs that they said nothing of."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from exported import changed, scripted
from torch import nn

import torchferry
from torchferry.records import Coverage
from torchferry.result import Result

ROWS = (torch.randn(4, 8),)


def verified(model: nn.Module, twin: nn.Module, args: tuple[torch.Tensor, ...], path: Path, **options: object) -> Result:
    axes = {name: {0: "rows"} for name in ("x", "y")[: len(args)]}
    return torchferry.verify(model, scripted(twin.eval(), args, path, fold=False, axes=axes), args, check=False, **options)  # type: ignore[arg-type]


def errors(result: Result) -> list[str]:
    return [d.code for d in result.diagnoses if d.severity == "error"]


def shown(result: Result) -> Coverage:
    return result.history.best.value("verify").coverage  # type: ignore[no-any-return]


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(5000, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.out(self.table(x)).tanh()


def test_one_row_of_a_large_table_is_named_and_fed(tmp_path: Path) -> None:
    model = Words().eval()
    result = verified(
        model, changed(model, lambda t: t.table.weight[4321].add_(1)), (torch.randint(0, 5000, (6,)),), tmp_path / "m"
    )
    assert errors(result) == ["NUM030"]
    assert result.diagnoses[0].message == "`table.weight` differs from the model's in 1 of 5000 rows, first at [4321, 0]"
    differing = [t for t in result.trials if t.outcome == "differ"]
    assert differing
    assert all(4321 in result.inputs(t)["x"].tolist() for t in differing)


def test_a_weight_that_differs_below_the_tolerance_is_refused_all_the_same(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).eval()
    result = verified(model, changed(model, lambda t: t[1].weight[3, 5].add_(1e-6)), ROWS, tmp_path / "m")
    assert errors(result) == ["NUM030"]
    assert not [t for t in result.trials if t.outcome == "differ"]


def test_another_checkpoint_is_the_first_and_only_thing_said(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).eval()
    twin = changed(model, lambda t: [p.normal_() for p in t.parameters()])
    result = verified(model, twin, ROWS, tmp_path / "m")
    assert errors(result) == ["NUM030"]
    assert any("the file agrees in 4 trials that fail" in fact for fact in result.diagnoses[0].evidence)


class Phase(nn.Module):
    """Long sums in the file's own order: with the model's weights too, its last bits are others."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(512) + 0.5)

    def forward(self, x):
        return (x * self.gain).cumsum(1).sin()


def test_another_checkpoint_is_told_where_sums_are_rounded_otherwise_too(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Phase().eval()
    twin = changed(model, lambda t: [p.uniform_(0.5, 1.5) for p in t.parameters()])
    few = torchferry.Budget(trials=1, mutants=0)
    assert errors(verified(model, twin, (torch.randn(2, 512),), tmp_path / "m", budget=few)) == ["NUM030"]


def test_weights_that_are_folded_on_top_of_a_wrong_operator_are_not_blamed(tmp_path: Path) -> None:
    class Sum(nn.Module):
        sign = 1

        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            return x @ (self.one + self.two) if self.sign > 0 else x @ self.whole - 1

    model = Sum().eval()
    twin = copy.deepcopy(model)
    twin.sign, twin.whole = -1, (model.one + 2 * model.two).detach()
    assert errors(verified(model, twin, ROWS, tmp_path / "m")) == ["NUM001"]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = nn.Linear(8, 4)

    def forward(self, x):
        return self.box(x)[x.sigmoid().sum(-1) > 9]


def test_an_output_that_is_always_empty_is_refused(tmp_path: Path) -> None:
    model = Detector().eval()
    result = verified(model, model, ROWS, tmp_path / "m")
    assert errors(result) == ["NUM031"]
    assert "was empty in every trial: nothing was compared" in result.diagnoses[0].message


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.register_buffer("anchors", torch.arange(12.0).reshape(4, 3))

    def forward(self, x):
        return self.out(x), self.anchors, torch.zeros_like(x), torch.full_like(x[:, :1], 7.0)


def test_outputs_that_are_constant_by_their_making_are_fine(tmp_path: Path) -> None:
    model = Constant().eval()
    result = verified(model, model, ROWS, tmp_path / "m")
    assert result.ok, result
    assert (shown(result).outputs, shown(result).varied) == (4, 4)


class Small(nn.Module):
    gain = 1e-6

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return self.out(x).sigmoid() * self.gain


def test_small_outputs_are_not_anything(tmp_path: Path) -> None:
    model = Small().eval()
    twin = copy.deepcopy(model)
    twin.gain = -1e-6
    assert not verified(model, twin, ROWS, tmp_path / "wrong").ok
    assert verified(model, model, ROWS, tmp_path / "right").ok


def test_outputs_of_rounding_errors_alone_are_not_blamed_on_the_file(tmp_path: Path) -> None:
    class Rest(nn.Module):
        def forward(self, x):
            return x, x.softmax(-1).sum(-1) - 1

    assert verified(Rest(), Rest(), (torch.randn(4, 50),), tmp_path / "m").ok


class Turn(nn.Module):
    """Takes directions only."""

    def forward(self, x, y):
        if not torch.allclose(x.norm(dim=-1), torch.ones(x.shape[0]), atol=1e-4):
            raise ValueError("no direction")
        return torch.stack([x[:, 0] * y[:, 0] - x[:, 1] * y[:, 1], x[:, 1] * y[:, 0] + x[:, 0] * y[:, 1]], 1)


class Account(nn.Module):
    """Takes numbers with their check digits only."""

    def forward(self, x, y):
        if not torch.equal(x[:, 1], (x[:, 0] * 7919 + 17) % 9973):
            raise ValueError("no account")
        return x[:, :1] * y


def test_an_input_of_which_eager_takes_one_value_is_not_varied(tmp_path: Path) -> None:
    still = (torch.tensor([[3, 3 * 7919 + 17 - 2 * 9973]] * 3), torch.randn(3, 2))
    assert errors(verified(Account(), Account(), still, tmp_path / "m")) == ["NUM032"]


def test_sizes_are_tried_with_the_examples_own_values_where_others_are_refused(tmp_path: Path) -> None:
    result = verified(Turn(), Turn(), (F.normalize(torch.randn(3, 2), dim=-1), torch.randn(3, 2)), tmp_path / "m")
    assert result.ok, result
    assert {t.sizes["rows"] for t in result.trials if t.outcome == "agree"} > {3}
    moved = next(t for t in result.trials if t.outcome == "agree" and t.sizes["rows"] != 3)
    assert result.inputs(moved)["x"].shape == (moved.sizes["rows"], 2)


@pytest.mark.parametrize("mutants", [None, 0, 12])
def test_the_number_of_mutants_can_be_asked_for(mutants: int | None, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3)).eval()
    result = verified(model, model, ROWS, tmp_path / "m", budget=torchferry.Budget(mutants=mutants))
    counted = shown(result)
    assert counted.mutants == (12 if mutants == 12 else 0 if mutants == 0 else counted.mutants)
    assert (counted.mutants > 12) == (mutants is None)
    assert ("mutants: none were asked for" in counted.not_done) == (mutants == 0)
    if counted.mutants:
        assert 0.9 < counted.noticed / counted.mutants <= 1


def test_reports_and_certificates_tell_what_a_verdict_stands_on(tmp_path: Path) -> None:
    from torchferry.certificate import read
    from torchferry.report.json_ import from_json, to_json

    class Clipped(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            return self.out(x.sigmoid()).clamp(-50, 50)

    result = torchferry.export(Clipped().eval(), ROWS, tmp_path / "m.onnx")
    counted = shown(result)
    assert (counted.weights, counted.equal, counted.outputs, counted.varied) == (2, 2, 1, 1)
    assert any("clamp" in words and "never below its bound" in words for words in counted.not_shown)
    told = "2 of 2 weights equal, 1 of 1 output and "
    for way in ("text", "markdown", "html"):
        assert told.strip() in " ".join(result.render(way).split()), way
    assert from_json(to_json(result)).shown.startswith(told)
    assert read(tmp_path / "m.onnx").data["coverage"]["equal"] == 2


def test_a_weight_that_is_normalised_and_looks_as_if_it_were_not_is_left_as_it_is(tmp_path: Path) -> None:
    model = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3)).eval()  # at first the norm is the weight's own
    assert verified(model, model, (torch.randn(2, 3, 9),), tmp_path / "m").ok


def test_zeros_that_may_be_anybodys_are_left_as_they_are(tmp_path: Path) -> None:
    class Folded(nn.Module):
        def __init__(self, folded: bool = False):
            super().__init__()
            self.n, self.l, self.folded = nn.LayerNorm(8), nn.Linear(8, 3), folded

        def forward(self, x):
            if not self.folded:
                return self.l(self.n(x))
            plain = F.layer_norm(x, (8,))
            return F.linear(plain, self.l.weight * self.n.weight, self.l.bias + self.l.weight @ self.n.bias)

    model, twin = Folded().eval(), Folded(folded=True).eval()
    twin.load_state_dict(model.state_dict())
    assert verified(model, twin, ROWS, tmp_path / "m").ok
