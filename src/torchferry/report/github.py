"""Annotations beside the source lines of a pull request, when the work runs in GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.escape import line, workflow
from torchferry.report.escaped import shown
from torchferry.report.view import Problem, Reportable, View

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def commands(result: Reportable | View) -> Iterator[str]:
    """Yield a workflow command for each problem."""
    yield from (_annotation(p) for p in shown(result).problems)


def _annotation(problem: Problem) -> str:
    about = {
        "file": problem.place.file,
        "line": str(problem.place.line or ""),
        "title": f"{problem.code} {problem.title}".strip(),
    }
    known = ",".join(f"{key}={workflow(line(value), value=True)}" for key, value in about.items() if value)
    said = f"{problem.message}\nhelp: {problem.help}" if problem.help else problem.message
    return f"::{COMMANDS[problem.severity]} {known}::{workflow(said)}"
