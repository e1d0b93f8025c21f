"""A stranger's rule, installed beside torchferry, takes part like our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_rule_from_an_entry_point_is_loaded_and_explained(tmp_path: Path) -> None:
    (tmp_path / "too_quiet.py").write_text(RULE, encoding="utf-8")
    info = tmp_path / "quiet-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[torchferry.rules]\nquiet = too_quiet\n", encoding="utf-8")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import torchferry; print(torchferry.explain('too-quiet'))"
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "ABC001" in ran.stdout, ran.stderr
    assert "Speak up" in ran.stdout
