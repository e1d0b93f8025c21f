"""Written once for all rules: each fires on its bad example, is silent on its good one, and heals what it offers to heal."""

from __future__ import annotations

import importlib
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchferry import catalogue
from torchferry.catalogue import Entry
from torchferry.eager import untouched
from torchferry.files import workspace
from torchferry.pipeline import heal, run
from torchferry.records import Case, History, Job

ENTRIES = catalogue.load()
HEADINGS = ("## What happened", "## Do instead")
ROOT = Path(__file__).parent.parent.parent


def examples(kind: str) -> list[object]:
    return [pytest.param(e, name, id=f"{e.code}-{name}") for e in ENTRIES for name in e.examples(kind)]


def in_workspace(job: Job, folder: Path) -> Job:
    from dataclasses import replace

    return replace(job, workspace=folder)


def passed(job: Job, tmp_path: Path) -> Case:
    with untouched(job.model), workspace(near=tmp_path / "x") as folder:
        return run(in_workspace(job, folder))


def healed(job: Job, tmp_path: Path, allow: str) -> History:
    with untouched(job.model), workspace(near=tmp_path / "x") as folder:
        return heal(in_workspace(job, folder), allow)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_rule_fails(caplog: pytest.LogCaptureFixture):
    yield
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR and r.name == "torchferry"]


@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_bad_example_fires_this_rule_and_no_other(entry: Entry, name: str, tmp_path: Path) -> None:
    case = passed(getattr(entry.module, name)(), tmp_path)
    codes = {d.code for d in case.diagnoses if d.severity != "note" or d.code == entry.code}
    assert entry.code in codes, [(s.stage, s.fault, s.findings) for s in case.steps]
    assert codes <= {entry.code, *entry.rule.also}, [(d.code, d.message) for d in case.diagnoses]


@pytest.mark.parametrize(("entry", "name"), examples("good"))
def test_good_example_is_clean(entry: Entry, name: str, tmp_path: Path) -> None:
    case = passed(getattr(entry.module, name)(), tmp_path)
    assert not [(d.code, d.message) for d in case.diagnoses if d.severity != "note"]
    assert case.ok, [(s.stage, s.fault) for s in case.steps]


@pytest.mark.parametrize(("entry", "name"), examples("bad"))
def test_offered_repair_heals_the_bad_example(entry: Entry, name: str, tmp_path: Path) -> None:
    job = getattr(entry.module, name)()
    case = passed(job, tmp_path)
    offered = [r for d in case.diagnoses if d.code == entry.code for r in entry.rule.repairs(case, d) if r.safety != "manual"]
    if not offered:
        assert "## Repair safety" not in entry.rule.page(), "the page speaks of a repair that is not offered"
        return
    safest = min((r.safety for r in offered), key=("safe", "unsafe").index)
    history = healed(job, tmp_path, safest)  # verification inside compares with the original eager model
    assert history.best.ok, [(d.code, d.message) for d in history.best.diagnoses]
    assert entry.code in {r.code for r in history.kept}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.code)
def test_entry_is_complete(entry: Entry) -> None:
    assert re.fullmatch(r"(INP|CAP|TRN|CHK|NUM|RUN)\d{3}", entry.code)
    assert [e.code for e in ENTRIES].count(entry.code) == 1
    assert [e.slug for e in ENTRIES].count(entry.slug) == 1
    assert entry.code not in (ROOT / "src/torchferry/catalogue/RETIRED.md").read_text(encoding="utf-8")
    assert entry.examples("bad"), "no bad() example"
    assert entry.examples("good"), "no good() example"
    assert entry.rule.title() and not entry.rule.title().endswith(".")
    for heading in HEADINGS:
        assert heading in entry.rule.page(), f"{heading} is missing"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.code)
def test_page_is_current(entry: Entry) -> None:
    docs = importlib.import_module("torchferry.report.docs")
    page = ROOT / "docs" / "diagnoses" / f"{entry.slug}.md"
    assert page.read_text(encoding="utf-8") == docs.page(entry), "run `make docs`"


def test_the_table_of_all_diagnoses_is_current() -> None:
    docs = importlib.import_module("torchferry.report.docs")
    assert (ROOT / "docs" / "diagnoses" / "README.md").read_text(encoding="utf-8") == docs.table(), "run `make docs`"


def test_loading_the_catalogue_imports_neither_torch_nor_onnx() -> None:
    code = "import sys; from torchferry.catalogue import load; load(); print(sorted({'torch','onnx','numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
