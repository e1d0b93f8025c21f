"""How much is tried: a number and a time that can be set, the most telling trials whatever they take, costly ones not at all."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from crossing import crossed, stock, verdict
from torch import nn

from torchferry.records import Bound, Budget, Case, Job, Signature, Step
from torchferry.verify.trials import budget as purse
from torchferry.verify.trials.budget import ESSENTIAL, SHARE, SHORTEST, USUAL, Purse

EXAMPLE = (torch.randn(2, 4),)


def case(budget: Budget | None = None, export: float = 0.0) -> Case:
    bound = Bound(nn.Identity(), EXAMPLE, Signature((), ()), ("y",), None, lambda s, v, n: EXAMPLE, dict)
    return Case(Job(budget=budget or Budget()), (Step("inputs", bound, seconds=export),))


def spend(purse: Purse, trials: int, seconds: float = 0.0, work: float = 0.0) -> None:
    for _ in range(trials):
        with purse.paying():
            end = time.thread_time() + work
            while time.thread_time() < end:
                pass
            time.sleep(seconds)


def test_number_and_time_can_be_set_and_are_shown_as_they_pass(tmp_path: Path) -> None:
    path, seen = stock(nn.ReLU(), EXAMPLE, tmp_path / "m.onnx"), []
    few = verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(trials=7), progress=seen.append)
    assert len(few.trials) == 7
    assert [e.done for e in seen if e.kind == "tick"] == list(range(1, 8))
    short = verdict(nn.ReLU(), EXAMPLE, path, budget=Budget(seconds=0.0))
    assert len(short.trials) == ESSENTIAL


def test_the_most_telling_trials_run_however_long_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purse, "SHORTEST", 0.0)
    slow = Purse(case())
    spend(slow, USUAL - 1, work=0.04)
    assert not slow.empty
    spend(slow, 1)
    assert slow.empty


def test_cheap_trials_are_counted_and_not_timed_so_that_a_busy_machine_sees_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purse, "SHORTEST", 0.0)
    waiting = Purse(case())
    spend(waiting, USUAL + 1, seconds=0.01)  # time passes, but this process does nothing
    assert not waiting.empty


def test_trials_may_take_as_long_as_the_export_did_and_a_little_in_any_case() -> None:
    dear = Purse(case(export=70.0))
    spend(dear, 2, work=0.04)
    assert dear.limit == 70.0
    dear = Purse(case(export=0.1))
    spend(dear, 2, work=0.04)
    assert dear.limit == SHORTEST


def test_a_trial_that_would_eat_up_what_is_left_is_passed_over() -> None:
    purse = Purse(replace(case(), job=Job(budget=Budget(seconds=4.0))))
    spend(purse, 2, seconds=0.1)
    assert purse.affords(2)
    assert not purse.affords(4.0 / SHARE / 0.1 * 1.5)


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
