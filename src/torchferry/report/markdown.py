"""The report as Markdown: for a pull request, a job summary, or a page of notes."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.report.following import following
from torchferry.report.view import Problem, Reportable, View, see
from torchferry.report.words import duration, size, span


def render(result: Reportable | View) -> str:
    """Return the report as Markdown."""
    return "\n\n".join(part for part in _parts(see(result)) if part) + "\n"


def _words(text: str) -> str:
    """Return a sentence in which `<lambda>` and its like, outside of backticks, are shown and not taken for tags."""
    parts = text.split("`")
    return "`".join(part if odd % 2 else part.replace("<", "&lt;") for odd, part in enumerate(parts))


def _parts(view: View) -> Iterator[str]:
    yield f"## {'✅' if view.ok else '❌'} {view.headline}"
    for problem in view.problems:
        yield from _problem(problem)
    yield _table(("", ""), _facts(view))
    if view.moving:
        yield "### Sizes"
        yield _table(("axes", "size", "range", "why it ends there"), _sizes(view))
    if view.repairs:
        yield "### Repairs"
        yield "\n".join(f"- **{m.code}** {m.title}" + (f" ({m.safety}: {m.changes})" if m.changes else "") for m in view.repairs)
    if view.not_shown or view.not_done:
        yield "### Not shown"
        yield "\n".join(f"- {_words(text)}" for text in (*view.not_shown, *(f"left out: {t}" for t in view.not_done)))
    if view.notes:
        yield "### Notes"
        yield "\n".join(f"- {_words(note)}" for note in view.notes)
    if view.runs:
        yield f"<details><summary>All {len(view.runs)} trials</summary>"
        yield _table(
            ("trial", "outcome", "of what is allowed", ""), [(r.name, r.outcome, f"{r.worst:.3g}", r.words) for r in view.runs]
        )
        yield "</details>"
    for step in following(view):
        yield f"{step.what}:\n\n```{step.language}\n{step.code}\n```"


def _problem(problem: Problem) -> Iterator[str]:
    code = f"{problem.code}: " if problem.code else ""
    yield f"### {problem.severity} {code}{_words(problem.title or problem.message)}"
    if problem.place.words:
        yield f"at {problem.place.words}"
    if problem.place.source:
        yield f"```python\n{problem.place.source.strip()}\n```"
    yield _words(problem.message) if problem.title else ""
    yield f"**What to do**: {_words(problem.help)}" if problem.help else ""
    yield "\n".join(f"- {_words(fact)}" for fact in problem.evidence)


def _facts(view: View) -> list[tuple[str, ...]]:
    file = ", ".join(f for f in (f"`{view.path}`" if view.path else "", size(view.bytes) if view.bytes else "", _made(view)) if f)
    rows = [("file", file), ("trials", view.trials), ("worst difference", view.worst), ("allowed", view.allowed)]
    rows += [("shown", view.shown)]
    rows += [("fixed", f) for f in view.fixed] + [("given up", g) for g in view.given_up] + [("took", duration(view.seconds))]
    return [row for row in rows if row[1]]


def _made(view: View) -> str:
    return f"opset {view.opset}, {view.runtime}".rstrip(", ") if view.opset else ""


def _sizes(view: View) -> list[tuple[str, ...]]:
    return [
        (", ".join(f"`{a}`" for a in m.axes), f"`{m.name}`", "" if m.follows else span(m.low, m.high), m.why) for m in view.moving
    ]


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    cells = [[_words(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    body = [titles, ["---"] * len(titles), *cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in body)
