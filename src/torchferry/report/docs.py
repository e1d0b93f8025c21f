"""The catalogue as Markdown pages: `python -m torchferry.report.docs docs` writes them, a test keeps them fresh."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from torchferry.catalogue import Entry, load
from torchferry.report import reference
from torchferry.report.shown_example import shown

STAGE_WORDS = {
    "inputs": "the example and the arguments",
    "capture": "taking the graph",
    "translate": "writing it as ONNX",
    "check": "the file",
    "verify": "comparing it with the model",
    "generate": "writing texts beside the model",
}


def page(entry: Entry) -> str:
    """Return the page of one diagnosis: its explanation, then the examples that a test runs."""
    rule = entry.rule
    parts = [
        f"# {entry.code} · {entry.slug}",
        f"**{rule.title()}** ({rule.severity}, since {rule.since})",
        rule.page(),
        "## An example that shows it",
        *map(shown, entry.examples("bad").values()),
        "## The same, mended by hand",
        *map(shown, entry.examples("good").values()),
        "<!-- generated from the catalogue by `make docs` -->",
    ]
    return "\n\n".join(parts) + "\n"


def table() -> str:
    """Return the page that lists all diagnoses by stage."""
    lines = [
        "# All diagnoses",
        "",
        "Each code has a page, at an address that stays: `diagnoses/CODE.html`. `torchferry explain CODE` shows it too.",
    ]
    for stage, words in STAGE_WORDS.items():
        rows = [e for e in load() if e.rule.stage == stage]
        if rows:
            lines += ["", f"## {stage}: {words}", "", "| code | name | what |", "| --- | --- | --- |"]
            lines += [f"| [{e.code}]({e.code}.md) | {e.slug} | {e.rule.title()} |" for e in rows]
    return "\n".join(lines) + "\n\n<!-- generated from the catalogue by `make docs` -->\n"


def with_rooms(text: str) -> str:
    """Return the page on the architecture with its table of rooms as the packages introduce themselves."""
    source = Path(__file__).parents[1]
    rooms = sorted(p.parent for p in source.rglob("__init__.py") if p.parent != source)
    lines = ["| room | what is in it |", "| --- | --- |"]
    for room in (r for r in rooms if r.parent.name != "catalogue"):
        first = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        lines.append(f"| `{room.relative_to(source).as_posix()}/` | {first.splitlines()[0].replace('|', '/')} |")
    return re.sub(
        r"(<!-- rooms -->\n).*?(<!-- end of rooms -->)", lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text, flags=re.S
    )


def references() -> dict[str, str]:
    """Return the pages of the reference by their file names."""
    return {"command-line.md": reference.command_line(), "python.md": reference.python()}


def write(folder: Path) -> None:
    """Write all pages below `folder`, and remove those of rules that are gone."""
    rooms = folder / "architecture.md"
    if rooms.exists():
        rooms.write_text(with_rooms(rooms.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "reference").mkdir(parents=True, exist_ok=True)
    for name, text in references().items():
        (folder / "reference" / name).write_text(text, encoding="utf-8")
    pages = folder / "diagnoses"
    pages.mkdir(parents=True, exist_ok=True)
    wanted = {f"{e.code}.md": page(e) for e in load()} | {"README.md": table()}
    for old in pages.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (pages / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
