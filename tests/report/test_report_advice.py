"""What a report advises and lists: nothing that was done already and failed, and every size that was tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stories import DIMS, IDS, TOLERANCE

from torchferry.catalogue.finding_rule import GUESS
from torchferry.edits.check import StampOpset
from torchferry.records import Bound, Case, Diagnosis, Fault, History, Job, Repair, Signature, Step, Trial, Verified
from torchferry.report import text, view

GUESSED_AT = f'{GUESS}: set the stamp to 17; it may mean another thing there; `repair="unsafe"` does it all the same'


def story(*tried: Repair) -> History:
    wrong = Diagnosis("CHK008", "the stamp is wrong", "", evidence=(GUESSED_AT, "seen: opset 99"), slug="s", title="the stamp")
    case = Case(Job(), (Step("check", fault=Fault("RuntimeError", "no")),), (wrong,))
    return History((case,), case, tried=tried)


def test_a_guess_that_was_not_made_is_offered() -> None:
    assert view.of(story(), kind="check").problems[0].evidence[0] == GUESSED_AT


def test_a_guess_that_was_made_and_did_not_help_is_not_offered_again() -> None:
    made = Repair("CHK008", "set the stamp to 17", StampOpset(17), "unsafe", "a guess")
    evidence = view.of(story(made), kind="check").problems[0].evidence
    assert evidence == ("tried: set the stamp to 17; the file was no better for it", "seen: opset 99")
    other = view.of(story(replace(made, code="CHK002")), kind="check").problems[0].evidence
    assert other[0] == GUESSED_AT


def test_the_sizes_that_were_tried_are_told_also_where_the_file_was_wrong() -> None:
    trials = (
        Trial("a", {"batch_size": 2, "sequence_length": 3}, "example", 0, "agree"),
        Trial("b", {"batch_size": 9, "sequence_length": 3}, "random", 0, "differ"),
        Trial("c", {"batch_size": 99, "sequence_length": 3}, "random", 0, "eager-refused"),
    )
    signature = Signature((IDS,), DIMS)
    steps = (
        Step("inputs", Bound(None, (), signature, (), None, vary=lambda *_: (), feeds=lambda *_: {})),
        Step("verify", Verified(trials, TOLERANCE)),
    )
    case = Case(Job(), steps)
    told = view.of(History((case,), case), kind="export")
    assert [(m.name, m.tried) for m in told.moving][:2] == [("batch_size", "2..9"), ("sequence_length", "3..3")]
    assert "batch_size = input_ids[0] (1..); tried 2..9" in text.render(told)


@pytest.mark.parametrize(("message", "detail"), [("the stamp: it is 99", "it is 99"), ("it is 99", "it is 99")])
def test_a_title_is_not_told_twice(message: str, detail: str) -> None:
    case = Case(Job(), (Step("check", fault=Fault("E", "no")),), (Diagnosis("CHK008", message, "", slug="s", title="the stamp"),))
    told = view.of(History((case,), case), kind="check")
    assert (told.problems[0].message, told.problems[0].detail) == (message, detail)
    assert f"CHK008]: the stamp\n  {detail}" in text.render(told)
