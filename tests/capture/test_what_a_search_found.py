"""A search that gets a program out of a model hands it on: nobody captures again what was captured already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bound import agrees, bound, captured
from torch import nn

from torchferry import pipeline
from torchferry.capture import capture, strategies
from torchferry.edits.capture import PrepareDense, Rewrite
from torchferry.records import Bound, Case, Edit, History, Job, Repair, Step
from torchferry.records.findings import CaptureStopped, DataDependent, RewritesFound
from torchferry.repair import accept
from torchferry.repair.search import searched

X = torch.rand(3, 4)


class Gates(nn.Module):
    def forward(self, x):
        if x.mean() > 0.25:  # noqa: SIM108  the statements are the point
            x = x.relu()
        else:
            x = x.tanh()
        if x.sum() > 1:  # noqa: SIM108
            y = x + 1
        else:
            y = x - 1
        return y[: x.size(0) // 2 + 1]


@pytest.fixture
def gates() -> Bound:
    return bound(Gates(), (X,), {0: {0: "n"}})


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The captures that are made."""
    made: list[Any] = []
    non_strict: Callable[..., Any] = strategies.non_strict

    def counted(module: Any, args: Any, shapes: Any) -> Any:
        made.append(module)
        return non_strict(module, args, shapes)

    monkeypatch.setattr(strategies, "non_strict", counted)
    return made


def stopped(what: Bound, *edits: Edit) -> Case:
    """Return a case whose capture has stopped, searched."""
    job = Job(what.module, edits=edits)
    return Case(job, (Step("inputs", what), captured(what, *edits)))


def test_the_stage_itself_says_what_stopped_it_and_searches_for_nothing(gates: Bound, captures: list[Any]) -> None:
    step = capture(Case(Job(), (Step("inputs", gates),)))
    assert len(captures) == 1
    assert any(isinstance(f, CaptureStopped) for f in step.findings)
    assert not any(isinstance(f, DataDependent | RewritesFound) for f in step.findings)


def test_what_was_found_is_what_the_stage_answers_with_the_rewrites(gates: Bound) -> None:
    remedy = captured(gates).remedy
    assert remedy is not None
    again = captured(gates, remedy.edit)
    assert str(again.value.program.graph) == str(remedy.answer.value.program.graph)
    assert (again.value.strategy, again.value.guards) == (remedy.answer.value.strategy, remedy.answer.value.guards)
    assert again.findings == remedy.answer.findings
    assert agrees(remedy.answer, Gates(), (X,), (X - 3,), (torch.rand(7, 4),))


def test_the_pass_with_the_repair_starts_from_it_and_captures_nothing(
    gates: Bound, captures: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = stopped(gates)
    remedy = case.steps[-1].remedy
    assert remedy is not None
    captures.clear()
    monkeypatch.setattr(Job, "stages", ("inputs", "capture"))
    history = History((case,), case)
    healed = pipeline._rerun(history, case.job, Repair("CAP001", "rewritten", remedy.edit), until=1e12)
    assert healed.job.edits == (remedy.edit,)
    assert healed.step("capture") is remedy.answer
    assert not captures


def test_with_any_other_edit_the_stage_is_asked_again(gates: Bound) -> None:
    case = stopped(gates)
    remedy = case.steps[-1].remedy
    assert remedy is not None
    assert isinstance(remedy.edit, Rewrite)
    assert [s.stage for s in pipeline._still_true(case, remedy.edit)] == ["inputs", "capture"]
    for other in (Rewrite(remedy.edit.sites[:1]), PrepareDense()):
        assert [s.stage for s in pipeline._still_true(case, other)] == ["inputs"]


def test_a_program_found_beside_rewrites_in_force_is_not_handed_on(gates: Bound) -> None:
    found = next(f for f in captured(gates).findings if isinstance(f, RewritesFound))
    assert len(found.sites) == 2
    step = captured(gates, Rewrite(found.sites[:1]))
    assert next(f for f in step.findings if isinstance(f, RewritesFound)).sites
    assert step.remedy is None


def test_a_program_is_kept_no_longer_than_it_may_be_of_use(gates: Bound) -> None:
    case = stopped(gates)
    repair = Repair("CAP001", "rewritten", Rewrite(()))
    kept = accept(History((case,), case), repair, Case(case.job))
    assert case.steps[-1].remedy is not None
    assert kept.cases[0].steps[-1].remedy is None


def test_what_is_about_no_value_is_put_to_the_other_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise TypeError("not in this way")

    monkeypatch.setattr(strategies, "non_strict", refused)
    case = Case(Job(), (Step("inputs", bound(nn.Linear(4, 4), (X,), {0: {0: "n"}})),))
    first = capture(case)
    assert first.fault is not None
    later = searched(case, first)
    assert later.value.strategy == "strict"
    assert [a.strategy for a in later.attempts] == [a.strategy for a in later.value.attempts] == ["non-strict", "strict"]
    assert not any(isinstance(f, CaptureStopped) for f in later.findings)
