"""What the documents say is true: their Python blocks run, their commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import torchferry
from torchferry.report.docs import references, with_rooms

ROOT = Path(__file__).parent.parent


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


RUN = ("README.md", *(f"docs/{name}.md" for name in ("tutorial", "sizes", "verification", "generation")))
HOW_TO = sorted(f"docs/how-to/{path.name}" for path in (ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("name", [*RUN, *HOW_TO])
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


def test_the_references_are_current() -> None:
    for name, text in references().items():
        assert (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def test_the_references_have_every_command_every_option_and_every_name() -> None:
    commands, names = references().values()
    for line in ("## doctor", "`-o, --output FILE`", "`--input NAME:SHAPE[:DTYPE]`", r"`--repair off\|safe\|unsafe`", "`600`"):
        assert line in commands
    for name in (*torchferry.__all__, "generation.CausalLM"):
        assert f"## torchferry.{name}\n" in names
    assert "- `ranges`: {" in names


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page, as code hosts and the site make them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}


def test_no_link_of_a_document_is_dead() -> None:
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.S)
        for address in (a for a in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in a):
            name, _, anchor = address.partition("#")
            target = path.parent / name if name else path
            assert target.is_file(), f"{path}: there is no {address}"
            assert not anchor or anchor in _anchors(target.read_text(encoding="utf-8")), f"{path}: nothing is called {address}"


def test_the_readme_reads_on_the_package_index_where_no_link_into_the_repository_works() -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert [a for a in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in a] == []
    named = re.findall(r"`((?:docs/)?[\w/-]+\.md)`", text)
    assert len(named) > 8
    assert not [n for n in named if not (ROOT / n).is_file()]
