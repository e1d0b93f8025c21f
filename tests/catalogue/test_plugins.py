"""A stranger's rule, installed beside torchferry, takes part like our own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXTENDING = Path(__file__).parent.parent.parent / "docs" / "extending.md"

RULE = '''
from torchferry.catalogue.rule import Rule
from torchferry.records import Diagnosis, Job


class TooQuiet(Rule):
    """The model says nothing

    ## What happened
    It is quiet.
    ## Do instead
    Speak up.
    """

    code, stage, severity = "ABC001", "inputs", "warning"

    def detect(self, case):
        yield Diagnosis(self.code, "it is too quiet in here")
'''


def installed(folder: Path, module: str, text: str) -> None:
    """Write a module with a rule, and the entry point that names it, as an installation does."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[torchferry.rules]\n{module} = {module}\n", encoding="utf-8")


def said(folder: Path, code: str) -> str:
    """Return what code prints in a process of its own that finds what is installed in a folder."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import torchferry; {code}"
    ran = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_rule_from_an_entry_point_is_loaded_and_explained(tmp_path: Path) -> None:
    installed(tmp_path, "too_quiet", RULE)
    told = said(tmp_path, "print(torchferry.explain('too-quiet'))")
    assert "ABC001" in told
    assert "Speak up" in told


def test_the_rule_in_the_documentation_finds_its_bad_example_and_not_its_good_one(tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?class ChoiceTakenAway.*?)```", EXTENDING.read_text(encoding="utf-8"), re.S)
    assert block is not None
    installed(tmp_path, "choice_taken_away", block[1])
    run = "from torchferry.pipeline import run; import choice_taken_away as m"
    told = said(tmp_path, f"{run}; print([d.message for d in run(m.bad()).errors], [d.code for d in run(m.good()).diagnoses])")
    assert told.strip() == "['`factor` is 3 for ever, and our callers choose it'] []"
