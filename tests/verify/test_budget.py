"""How much is tried: a number of trials and an amount of work, neither of which hangs on the clock unless the user sets one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from crossing import crossed, stock, verdict
from torch import nn

from torchferry.records import Bound, Budget, Case, Dim, Job, Signature, Step, TensorSpec
from torchferry.verify.run.eager_trace import record
from torchferry.verify.trials import budget
from torchferry.verify.trials.budget import DIRECTED, ESSENTIAL, SHARE, USUAL, WORK, TrialBudget
from torchferry.verify.trials.work import Work, measured

EXAMPLE = (torch.randn(2, 4),)


def case(budget: Budget | None = None) -> Case:
    bound = Bound(nn.Identity(), EXAMPLE, Signature((), ()), ("y",), None, lambda s, v, n: EXAMPLE, dict)
    return Case(Job(budget=budget or Budget()), (Step("inputs", bound),))


def spent(work: float, trials: int, *, directed: bool = False, budget: Budget | None = None) -> TrialBudget:
    made = TrialBudget(case(budget), Work(work))
    for _ in range(trials):
        made.pay({}, directed=directed)
    return made


def test_number_and_time_can_be_set_and_are_shown_as_they_pass(tmp_path: Path) -> None:
    path, seen = stock(nn.ReLU(), EXAMPLE, tmp_path / "m.onnx"), []
    few = verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(trials=7), progress=seen.append)
    assert 7 < len(few.trials) <= 7 * (1 + DIRECTED)
    assert [e.done for e in seen if e.kind == "tick"] == list(range(1, len(few.trials) + 1))
    short = verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(seconds=0.0))
    assert len(short.trials) == ESSENTIAL


def test_trials_that_the_clock_ended_are_said_to_be_cut_short(tmp_path: Path) -> None:
    path = stock(nn.ReLU(), EXAMPLE, tmp_path / "m.onnx")
    assert "cut short" in str(verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(seconds=0.0)))
    assert "cut short" not in str(verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(seconds=600.0)))


def test_the_most_telling_trials_run_however_much_they_cost() -> None:
    assert not spent(WORK, USUAL - 1).empty(directed=False)
    assert spent(WORK, USUAL).empty(directed=False)


def test_ordinary_and_directed_trials_do_not_squeeze_each_other_out() -> None:
    assert not spent(WORK, USUAL).empty(directed=True)
    many = spent(1.0, DIRECTED * 64, directed=True)
    assert many.empty(directed=True)
    assert not many.empty(directed=False)


def test_the_clock_decides_nothing_unless_the_user_sets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, timed = spent(1.0, ESSENTIAL), spent(1.0, ESSENTIAL, budget=Budget(seconds=50.0))
    monkeypatch.setattr(budget.time, "perf_counter", lambda: time.monotonic() + 1e6)
    assert not waiting.late
    assert timed.late


def test_a_trial_that_would_eat_up_what_there_is_is_passed_over() -> None:
    made = TrialBudget(case(), Work(WORK / SHARE / 10, sizes={"n": 4}))
    assert made.affords({"n": 8})
    assert not made.affords({"n": 400})
    assert TrialBudget(case(), Work(10 * WORK, sizes={"n": 4})).affords({"n": 4})  # what the example costs may always be spent


class Attention(nn.Module):
    def forward(self, x):
        return (x @ x.transpose(1, 2)).softmax(-1) @ x


def test_work_is_counted_and_grows_as_the_model_does() -> None:
    example = (torch.randn(2, 16, 4),)
    signature = Signature((TensorSpec("x", "float32", ("b", "n", 4)),), (Dim("b"), Dim("n")))

    def vary(sizes: dict[str, int], values: str, seed: int) -> tuple[torch.Tensor, ...]:
        return (torch.randn(sizes.get("b", 2), sizes.get("n", 16), 4),)

    bound = Bound(Attention(), example, signature, ("y",), None, vary, dict)
    work = measured(bound, record(bound.module, example), {"b": 2, "n": 16})
    for sizes, name in (({"b": 200}, "b"), ({"n": 1600}, "n")):
        real = measured(bound, record(bound.module, vary(sizes, "", 0)), {}).example
        assert real / 3 < work.of(sizes) < real * 3, name


def test_the_same_seed_gives_the_same_verdict_and_another_seed_other_values(tmp_path: Path) -> None:
    path = stock(nn.ReLU(), EXAMPLE, tmp_path / "m.onnx")
    one, two, other = (verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(trials=6, seed=s)) for s in (1, 1, 2))
    assert [(t.name, t.seed, t.max_abs) for t in one.trials] == [(t.name, t.seed, t.max_abs) for t in two.trials]
    drawn = [next(t for t in r.trials if t.values == "random") for r in (one, other)]
    assert not torch.equal(*(torch.from_numpy(r.inputs(t)["input"]) for r, t in zip((one, other), drawn, strict=True)))


class OnLength(nn.Module):
    def forward(self, x):
        return x.mean(1) if x.shape[1] > 8 else x.amax(1)


def test_a_failing_trial_is_told_at_the_size_nearest_to_the_examples(tmp_path: Path) -> None:
    result = crossed(OnLength(), (torch.randn(2, 5, 4),), tmp_path, {"x": {1: "length"}})
    assert "`length` = 9 (the example has 5)" in result.diagnoses[0].message
