"""Annotations beside the source lines of a pull request, when the work runs in GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.report.view import Problem, Reportable, View, see

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def commands(result: Reportable | View) -> Iterator[str]:
    """Yield a workflow command for each problem."""
    yield from (_annotation(p) for p in see(result).problems)


def _annotation(problem: Problem) -> str:
    about = {
        "file": problem.place.file,
        "line": str(problem.place.line or ""),
        "title": f"{problem.code} {problem.title}".strip(),
    }
    known = ",".join(f"{key}={_escape(value, more=True)}" for key, value in about.items() if value)
    said = f"{problem.message}\nhelp: {problem.help}" if problem.help else problem.message
    return f"::{COMMANDS[problem.severity]} {known}::{_escape(said)}"


def _escape(text: str, more: bool = False) -> str:
    """Return the text as workflow commands take it; `more` for what stands before the `::`."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")] + ([(":", "%3A"), (",", "%2C")] if more else [])
    for plain, coded in pairs:
        text = text.replace(plain, coded)
    return text
