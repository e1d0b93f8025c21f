"""The loop: repairs are tried in order, kept only when proven better, and leave nothing of themselves when rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchferry import pipeline
from torchferry.diagnose import diagnose
from torchferry.edits.capture import PrepareDense
from torchferry.records import (
    Case,
    Diagnosis,
    Fault,
    History,
    Job,
    Location,
    Repair,
    Step,
    Tolerance,
    Trial,
    Verified,
)
from torchferry.records.findings import NothingShown
from torchferry.repair import judge


def case(job: Job, *, errors: tuple[Diagnosis, ...] = (), stages: int = 5, failing: int = 0) -> Case:
    steps = []
    for n, stage in enumerate(job.stages):
        if n == stages:
            steps.append(Step(stage, fault=Fault("Error", "stopped here")))
            break
        trials = (Trial("t", {}, "random", 0, "agree"), *(Trial("t", {}, "random", 0, "differ") for _ in range(failing)))
        steps.append(Step(stage, Verified(trials, Tolerance(0, 0, "")) if stage == "verify" else object()))
    return Case(job, tuple(steps), errors)


def error(code: str, line: int) -> Diagnosis:
    return Diagnosis(code, "wrong", location=Location("model.py", line))


REPAIR = Repair("CAP001", "mend it", PrepareDense())


def judged(before: Case, after: Case, mended: Diagnosis) -> History:
    return judge(History((before,), before), mended, REPAIR, after)


def test_a_case_that_comes_further_is_kept() -> None:
    job, wrong = Job(), error("CAP001", 3)
    history = judged(case(job, errors=(wrong,), stages=1), case(job), wrong)
    assert history.best.ok
    assert history.kept == (REPAIR,)
    assert history.mended == (replace(wrong, fixed=True),)


def test_a_case_that_stops_earlier_is_rejected() -> None:
    job, wrong = Job(), error("NUM001", 3)
    before = case(job, errors=(wrong,), failing=1)
    history = judged(before, case(job, errors=(error("CAP001", 9),), stages=1), wrong)
    assert history.best.steps is before.steps
    assert history.best.errors[0].evidence == ("tried: mend it; stopped here",)
    assert not history.kept
    assert history.tried == (REPAIR,)


def test_one_of_two_faults_in_a_stage_mended_is_an_advance() -> None:
    job, first, second = Job(), error("CAP001", 3), error("CAP001", 8)
    history = judged(case(job, errors=(first,), stages=1), case(job, errors=(second,), stages=1), first)
    assert history.kept == (REPAIR,)


def test_a_fault_seen_before_is_no_advance() -> None:
    job, first, second = Job(), error("CAP001", 3), error("CAP001", 8)
    start = case(job, errors=(second,), stages=1)
    history = History((start, case(job, errors=(first,), stages=1)), case(job, errors=(first,), stages=1))
    after = judge(history, first, REPAIR, case(job, errors=(second,), stages=1))
    assert not after.kept


def test_fewer_failing_trials_are_an_advance_but_not_a_verdict() -> None:
    job, wrong = Job(), error("NUM001", 3)
    history = judged(case(job, errors=(wrong,), failing=5), case(job, errors=(wrong,), failing=1), wrong)
    assert history.kept == (REPAIR,)
    assert not history.best.ok


def test_a_case_whose_trials_fail_is_never_ok_even_if_no_rule_says_so() -> None:
    assert not case(Job(), failing=1).ok


def test_a_case_in_which_eager_refused_every_trial_is_not_ok_and_says_so() -> None:
    good = case(Job())
    refused = Verified((Trial("t", {}, "random", 0, "eager-refused"),), Tolerance(0, 0, ""))
    told = NothingShown({"eager-refused": 1}, ())
    empty = replace(good, steps=(*good.steps[:-1], Step("verify", refused, findings=(told,))))
    assert not empty.ok
    assert {d.code for d in diagnose(empty)} == {"NUM021"}


def test_failing_trials_without_a_rule_are_told_as_a_last_resort() -> None:
    found = diagnose(case(Job(), failing=1))
    assert "RUN900" in {d.code for d in found}


def test_a_rejected_repair_leaves_the_file_of_the_best_case_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = error("CAP001", 3)

    def run(job: Job, known: tuple[Step, ...] = ()) -> Case:
        assert job.workspace is not None
        (job.workspace / job.file_name).write_text("repaired" if job.edits else "first", encoding="utf-8")
        return case(job, errors=(wrong,), stages=2 if not job.edits else 1)

    offers = iter([(wrong, REPAIR)])
    monkeypatch.setattr(pipeline, "run", run)
    monkeypatch.setattr("torchferry.repair.next_repair", lambda history, allow: next(offers, None))
    history = pipeline.heal(Job(workspace=tmp_path))
    assert not history.kept
    best = history.best.job
    assert best.workspace is not None
    assert (best.workspace / best.file_name).read_text(encoding="utf-8") == "first"
