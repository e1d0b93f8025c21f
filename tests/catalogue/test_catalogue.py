"""Written once for all rules: each fires on its bad example, is silent on its good one, and heals what it offers to heal."""

from __future__ import annotations

import importlib
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from told import SNAPSHOTS, in_words, snapshot

from torchferry import catalogue
from torchferry.catalogue import Entry
from torchferry.eager import untouched
from torchferry.files import workspace
from torchferry.pipeline import heal, mend, run
from torchferry.records import Budget, Case, History, Job, Repair

ENTRIES = catalogue.load()
HEADINGS = ("## What happened", "## Do instead")
ALL = Budget()
FEW = Budget(trials=16, mutants=0)  # enough for an example to show what it is about; `make slow` has all of them
LATE = {"NUM011", "NUM014"}  # about NaN and infinity, which are tried after all that is plausible
ROOT = Path(__file__).parent.parent.parent


def examples(kind: str) -> list[object]:
    # the tests on one example stay in one process, where its story is kept
    every = [(e, name) for e in ENTRIES for name in e.examples(kind)]
    return [pytest.param(e, name, id=f"{e.code}-{name}", marks=pytest.mark.xdist_group(e.code)) for e, name in every]


def enough(entry: Entry) -> Budget:
    """Return what the examples of a rule need."""
    return replace(FEW, trials=ALL.trials) if entry.code in LATE else FEW


@contextmanager
def at_work(job: Job, budget: Budget) -> Iterator[Job]:
    job = replace(job, budget=replace(budget, time_limit=job.budget.time_limit))
    with tempfile.TemporaryDirectory() as folder, untouched(job.model), workspace(near=Path(folder) / "model.onnx") as inside:
        yield replace(job, workspace=inside)


@cache
def story(entry: Entry, name: str, budget: Budget | None = None) -> History:
    """Return what became of a bad example: the first case, and after it the safest repairs that the rule offers."""
    made = getattr(entry.module, name)()
    if isinstance(made, Case):  # it failed outside of the pipeline
        return History(cases=(made,), best=made)
    with entry.rule.premise(), at_work(made, budget or enough(entry)) as job:
        first = heal(job, None)
        safeties = {r.safety for r in offered(entry, first.best)}
        if not safeties & {"safe", "unsafe"}:
            return first
        return mend(first, job, "safe" if "safe" in safeties else "unsafe")  # compared with the original eager model


def outcome(history: History) -> tuple[object, ...]:
    """Return what was found at first, which repairs were kept, and whether the file is right then."""
    found = sorted((d.code, d.severity) for d in history.cases[0].diagnoses)
    return found, [(r.code, r.safety, r.title) for r in history.kept], history.best.ok


def offered(entry: Entry, case: Case) -> list[Repair]:
    found = [d for d in case.diagnoses if d.code == entry.code]
    return [r for d in found for r in entry.rule.repairs(case, d) if r.safety != "manual"]


@pytest.fixture(autouse=True)
def _no_rule_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR and r.name == "torchferry"]


@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_bad_example_fires_this_rule_and_no_other(entry: Entry, name: str) -> None:
    case = story(entry, name).cases[0]
    codes = {d.code for d in case.diagnoses if d.severity != "note" or d.code == entry.code}
    assert entry.code in codes, [(s.stage, s.fault, s.findings) for s in case.steps]
    assert codes <= {entry.code, *entry.rule.also}, [(d.code, d.message) for d in case.diagnoses]


@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_offered_repair_heals_the_bad_example(entry: Entry, name: str) -> None:
    history = story(entry, name)
    if not history.tried:
        assert "## Repair safety" not in entry.rule.page(), "the page speaks of a repair that is not offered"
        return
    assert entry.code in {r.code for r in history.kept}
    if all(r.changes.startswith("a guess, not shown: ") for r in history.kept):  # it works, and nothing shows it to be right
        assert history.best.guessed, [(d.code, d.message) for d in history.best.diagnoses]
        return
    assert history.best.ok, [(d.code, d.message) for d in history.best.diagnoses]


@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_bad_example_is_told_in_these_words(entry: Entry, name: str, request: pytest.FixtureRequest) -> None:
    told, known = in_words(entry, story(entry, name)), snapshot(entry.code, name)
    if request.config.option.update_snapshots:
        known.write_text(told, encoding="utf-8")
    assert told == known.read_text(encoding="utf-8"), f"read the difference; `make snapshots ONLY={entry.code}` takes it over"


def test_each_snapshot_is_of_an_example() -> None:
    assert set(SNAPSHOTS.iterdir()) == {snapshot(e.code, name) for e in ENTRIES for name in e.examples("bad")}


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_more_trials_find_the_same_and_keep_the_same_repairs(entry: Entry, name: str) -> None:
    few, all_of_them = story(entry, name), story(entry, name, ALL)
    assert outcome(few) == outcome(all_of_them)


@pytest.mark.parametrize(("entry", "name"), examples("good"))
def test_good_example_is_clean(entry: Entry, name: str) -> None:
    with entry.rule.premise(), at_work(getattr(entry.module, name)(), enough(entry)) as job:
        case = run(job)
    assert not [(d.code, d.message) for d in case.diagnoses if d.severity != "note"]
    assert case.ok, [(s.stage, s.fault) for s in case.steps]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.code)
def test_entry_is_complete(entry: Entry) -> None:
    assert re.fullmatch(r"(INP|CAP|TRN|CHK|NUM|RUN)\d{3}", entry.code)
    assert [e.code for e in ENTRIES].count(entry.code) == 1
    assert [e.slug for e in ENTRIES].count(entry.slug) == 1
    assert entry.code not in (ROOT / "src/torchferry/catalogue/RETIRED.md").read_text(encoding="utf-8")
    assert entry.examples("bad"), "no bad() example"
    assert entry.examples("good"), "no good() example"
    assert entry.rule.title()
    assert not entry.rule.title().endswith(".")
    for heading in HEADINGS:
        assert heading in entry.rule.page(), f"{heading} is missing"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.code)
def test_page_is_current(entry: Entry) -> None:
    docs = importlib.import_module("torchferry.report.docs")
    page = ROOT / "docs" / "diagnoses" / f"{entry.code}.md"
    assert page.read_text(encoding="utf-8") == docs.page(entry), "run `make docs`"


def test_the_table_of_all_diagnoses_is_current() -> None:
    docs = importlib.import_module("torchferry.report.docs")
    assert (ROOT / "docs" / "diagnoses" / "README.md").read_text(encoding="utf-8") == docs.table(), "run `make docs`"


def test_loading_the_catalogue_imports_neither_torch_nor_onnx() -> None:
    code = "import sys; from torchferry.catalogue import load; load(); print(sorted({'torch','onnx','numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
