"""Run the tests with other releases of what torchferry stands on, each in a virtual environment of its own, and write the table.

    python benchmarks/versions.py torch==2.15.0 onnxruntime==1.20.0
    python benchmarks/versions.py --all torch==2.15.0     # every test of `make test`, not the stated subset
    python benchmarks/versions.py --parts tests/foreign tests/test_scenarios.py -- torch==2.15.0    # these alone

An environment is made in `build/versions/` on first use. One with another torch takes some 5 GB; any other release is fetched,
with what it alone needs, into a folder that stands before this environment's packages. What a run gives is kept in
`benchmarks/versions.json`, from which `docs/versions.md` is written anew.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import TypedDict
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
ROOMS, KEPT, PAGE = ROOT / "build" / "versions", ROOT / "benchmarks" / "versions.json", ROOT / "docs" / "versions.md"
# What meets the other side's private names, messages and kernels; the rest runs on what these give.
SUBSET = (
    "tests/foreign",
    "tests/inputs",
    "tests/eager",
    "tests/capture",
    "tests/translate",
    "tests/catalogue",
    "tests/test_scenarios.py",
)
# what a release needs, and the newest does not have or has too new; by its first number
BESIDE = {"transformers==4": ("tokenizers<0.23", "huggingface_hub<1", "requests", "urllib3", "charset_normalizer", "certifi")}
HEAD = """# Releases that were tried

`python benchmarks/versions.py torch==2.15.0` makes an environment with that release, and with the newest of everything else that
`constraints.txt` names; it runs the tests there, and writes this table. The oldest releases of the other packages that the
metadata allows are used together by a test that `make test` runs (`tests/test_floors.py`). "subset" is {subset};
"all" is what `make test` runs; where less was run, it is named.
A newer release is used all the same: `torchferry doctor` and every report say that it is untested.

| release | tests | passed | failed | skipped | what fails |
|---|---|---|---|---|---|
"""
# what a release lacks, and a test that fails there therefore asks for in vain
LIMITS = """
Known limits of releases, in which the failures above end:

- onnxruntime 1.20 takes no model as bytes whose weights lie beside it, and lays no value open by DLPack (its address is used
  instead).
- transformers 4.57 has no caches with states beside keys and values (LFM2, Falcon-H1, Qwen3-Next: 5.20 has them; without them
  such a model is refused in words), no choice of how experts are computed, and no patches of its own for an export.
"""


class Counts(TypedDict):
    """What some tests came to."""

    passed: int
    failed: list[str]
    skipped: int


class Row(Counts):
    """What the tests came to with one release, and which tests these were."""

    tests: str


def main() -> None:
    """Run the tests with each release that is named; write the table of all that were ever run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="NAME==VERSION")
    parser.add_argument("--all", action="store_true", help="run every test, not the stated subset")
    parser.add_argument("--parts", nargs="+", default=[], help="run these tests alone; the table names them")
    parser.add_argument("--workers", default="2", help="processes that run tests at once")
    asked = parser.parse_args()
    chosen = [] if asked.all else asked.parts or list(SUBSET)
    named = "all" if asked.all else ", ".join(f"`{part}`" for part in asked.parts) or "subset"
    rows: dict[str, Row] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for release in asked.releases:
        if not re.fullmatch(r"[a-z-]+==[\w.]+", release):
            parser.error(f"{release!r} is no NAME==VERSION")
        python, before = environment(release) if release.startswith("torch==") else (Path(sys.executable), folder(release))
        rows[release] = Row(tests=named, **tried(python, before, chosen, asked.workers))
        KEPT.write_text(json.dumps(dict(sorted(rows.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


def folder(release: str) -> Path:
    """Return a folder with a release, and with what it does not share with the newest."""
    room = ROOMS / release.replace("==", "-")
    if not (room / "ready").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(room)]
        subprocess.run([*install, release, *BESIDE.get(release.partition(".")[0], ())], check=True)
        (room / "ready").touch()
    return room


def environment(release: str) -> tuple[Path, Path]:
    """Return the Python of an environment with a release and this checkout in it, and where the release is."""
    room = ROOMS / release.replace("==", "-")
    python = room / "bin" / "python"
    if not (room / "ready").exists():
        venv.create(room, with_pip=True)
        name = release.partition("==")[0]
        committed = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        pins = [line for line in committed if line.partition("==")[0] != name]
        (room / "constraints.txt").write_text("\n".join(pins), encoding="utf-8")
        install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(room / "constraints.txt"), release]
        subprocess.run([*install, "--editable", f"{ROOT}[test]"], check=True)
        (room / "ready").touch()
    return python, room


def tried(python: Path, room: Path, chosen: list[str], workers: str) -> Counts:
    """Return what the tests come to in an environment, with the packages of a folder before its own."""
    report = room / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        str(python),
        "-m",
        "pytest",
        "-n",
        workers,
        "--dist",
        "loadgroup",
        "-m",
        "not slow and not compat",
        f"--junitxml={report}",
    ]
    path = os.pathsep.join((str(room), str(ROOT / "src")))
    subprocess.run([*command, *chosen], cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": path})
    if not report.exists():
        sys.exit(f"{python}: the tests did not run to their end")
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = sum(c.find("skipped") is not None for c in cases)
    names = sorted(f"{c.get('classname', '').replace('.', '/')}.py::{c.get('name')}" for c in failed)
    return Counts(passed=len(cases) - len(failed) - skipped, failed=names, skipped=skipped)


def page(rows: dict[str, Row]) -> str:
    """Return the page with its table."""
    head = HEAD.format(subset=", ".join(f"`{part}`" for part in SUBSET))
    lines = [
        f"| {release.replace('==', ' ')} | {r['tests']} | {r['passed']} | {len(r['failed'])} | {r['skipped']} "
        f"| {'<br>'.join(f'`{name}`' for name in r['failed']) or '-'} |"
        for release, r in sorted(rows.items())
    ]
    return head + "\n".join(lines) + "\n" + LIMITS


if __name__ == "__main__":
    main()
