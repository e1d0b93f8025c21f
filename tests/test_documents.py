"""What the documents say is true: their Python blocks run, their commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.report.docs import with_rooms

ROOT = Path(__file__).parent.parent


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("name", ["docs/tutorial.md", "docs/sizes.md", "docs/verification.md", "docs/generation.md", "README.md"])
def test_the_python_blocks_run_in_order(name: str, tmp_path: Path) -> None:
    # the blocks go into files of their own, as source repairs need source; line numbers count within a block
    script = "import linecache\nspace = {'__name__': 'document'}\n"
    for number, block in enumerate(blocks(ROOT / name)):
        (tmp_path / f"block{number}.py").write_text(block, encoding="utf-8")
        script += f"exec(compile(open('block{number}.py').read(), 'block{number}.py', 'exec'), space)\n"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_readme_has_exactly_two_commands_on_its_first_screen() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30])
    shown = re.findall(r"```sh\n(.*?)```", first_screen, re.S)
    commands = [line for block in shown for line in block.splitlines() if line.strip()]
    assert [c.split("#")[0].strip() for c in commands] == ["make demo", "make test"]


def test_every_make_target_named_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        named = set(re.findall(r"`make ([a-z]+)`", path.read_text(encoding="utf-8")))
        assert named <= targets, f"{path.name}: {named - targets}"


def test_the_page_on_the_architecture_is_current_and_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert with_rooms(text) == text, "run `make docs`"
    source = ROOT / "src" / "torchferry"
    named = set(re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.(?:py|json))?)`", text))
    assert len(named) > 40
    assert not {n for n in named if not (source / n).exists() and not (ROOT / n).exists()}
