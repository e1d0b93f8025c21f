"""A stranger's rule, installed beside torchferry, takes part like our own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXTENDING = Path(__file__).parent.parent.parent / "docs" / "extending.md"


def installed(folder: Path, rule: str, module: str) -> None:
    """Write a rule that the documentation shows as a module, and the entry point that names it, as an installation does."""
    shown = re.findall(r"```python\n(.*?)```", EXTENDING.read_text(encoding="utf-8"), re.S)
    (text,) = [block for block in shown if f"class {rule}(" in block]
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[torchferry.rules]\n{module} = {module}\n", encoding="utf-8")


def said(folder: Path, code: str) -> str:
    """Return what code prints in a process of its own that finds what is installed in a folder."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import torch, torchferry; {code}"
    ran = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_rule_that_the_document_shows_is_loaded_from_an_entry_point_explained_and_heals(tmp_path: Path) -> None:
    installed(tmp_path, "GraphNotAsTraced", "graph_not_as_traced")
    told = said(tmp_path, "print(torchferry.explain('graph-not-as-traced'))")
    assert "ABC001" in told
    assert "Our reviewers read graphs node by node" in told
    export = "result = torchferry.export(torch.nn.ReLU(), (torch.rand(2, 3),), sys.argv[1] + '/relu.onnx')"
    told = said(tmp_path, f"{export}; print(result.ok, *(f'{{r.code}} {{r.edit}}' for r in result.repairs))")
    assert "True ABC001 translate: optimiser-off()" in told


def test_the_rule_about_a_finding_finds_its_bad_example_and_not_its_good_one(tmp_path: Path) -> None:
    installed(tmp_path, "ChoiceTakenAway", "choice_taken_away")
    run = "from torchferry.pipeline import run; import choice_taken_away as m"
    told = said(tmp_path, f"{run}; print([d.message for d in run(m.bad()).errors], [d.code for d in run(m.good()).diagnoses])")
    assert told.strip() == "['`factor` is 3 for ever, and our callers choose it'] []"
