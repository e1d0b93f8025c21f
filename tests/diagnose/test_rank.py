"""Consequences are left out where they follow from a cause, and only there."""

from __future__ import annotations

from torchferry.catalogue import load
from torchferry.diagnose.rank import rank
from torchferry.records import Diagnosis, Location

ENTRIES = {e.code: e for e in load()}
HERE, THERE = Location(file="model.py", line=7), Location(file="model.py", line=9)


def told(*found: Diagnosis, stops: tuple[Location, ...] = ()) -> list[tuple[str, int | None]]:
    return [(d.code, d.location.line) for d in rank(found, ENTRIES, stops)]


def test_a_consequence_on_the_same_line_or_on_none_is_left_out() -> None:
    cause = Diagnosis("CAP057", "nested", location=HERE)
    assert told(cause, Diagnosis("CAP006", "a number", location=HERE), Diagnosis("CAP017", "a size")) == [("CAP057", 7)]


def test_the_same_kind_of_trouble_on_another_line_stays() -> None:
    found = Diagnosis("CAP057", "nested", location=HERE), Diagnosis("CAP003", "a loop", location=THERE)
    assert set(told(*found)) == {("CAP057", 7), ("CAP003", 9)}


def test_a_cause_without_a_line_stands_where_the_capture_stopped() -> None:
    cause = Diagnosis("CAP050", "quantised", location=Location(module_path="fc"))
    effects = Diagnosis("CAP006", "a number", location=HERE), Diagnosis("CAP003", "a loop", location=THERE)
    assert set(told(cause, *effects, stops=(HERE, THERE))) == {("CAP050", None), ("CAP003", 9)}


def test_what_forward_meets_first_is_told_first() -> None:
    found = Diagnosis("CAP001", "a branch", location=THERE), Diagnosis("CAP013", "numpy", location=HERE)
    assert told(*found, stops=(HERE, THERE)) == [("CAP013", 7), ("CAP001", 9)]
