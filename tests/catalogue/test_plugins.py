"""A stranger's rule, installed beside torchferry, takes part like our own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "extending.md"
EXPORT = """
import sys, torch, torchferry
sys.path.insert(0, sys.argv[1])
print(torchferry.explain("graph-not-as-traced"))
result = torchferry.export(torch.nn.ReLU(), (torch.rand(2, 3),), sys.argv[1] + "/relu.onnx")
print(result.ok, *(f"{r.code} {r.edit}" for r in result.repairs))
"""


def test_the_rule_that_the_document_shows_is_loaded_from_an_entry_point_explained_and_heals(tmp_path: Path) -> None:
    (rule, *_) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S)
    (tmp_path / "graph_not_as_traced.py").write_text(rule, encoding="utf-8")
    info = tmp_path / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[torchferry.rules]\nstrange = graph_not_as_traced\n", encoding="utf-8")
    ran = subprocess.run([sys.executable, "-c", EXPORT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "ABC001" in ran.stdout, ran.stderr
    assert "Our reviewers read graphs node by node" in ran.stdout
    assert "True ABC001 translate: optimiser-off()" in ran.stdout
