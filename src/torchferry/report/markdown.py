"""The report as Markdown: for a pull request, a job summary, or a page of notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchferry.escape import code, fenced, markdown
from torchferry.report import addresses
from torchferry.report.escaped import shown
from torchferry.report.next_steps import Next, following
from torchferry.report.view import Mend, Problem, Reportable, View, see
from torchferry.report.words import duration, size, span


def render(result: Reportable | View) -> str:
    """Return the report as Markdown."""
    return "\n\n".join(part for part in _parts(shown(result), following(see(result))) if part) + "\n"


def _parts(view: View, steps: Iterable[Next]) -> Iterator[str]:
    yield f"## {'✅' if view.ok else '❌'} {markdown(view.headline)}"
    for problem in view.problems:
        yield from _problem(problem)
    yield _table(("", ""), _facts(view))
    if view.moving:
        yield "### Sizes"
        yield _table(("axes", "size", "range", "why it ends there"), _sizes(view))
    if view.repairs:
        yield "### Repairs"
        yield "\n".join(f"- **{markdown(m.code)}** {markdown(m.title)}{markdown(_changes(m))}" for m in view.repairs)
    if view.not_shown or view.not_done:
        yield "### Not shown"
        yield "\n".join(f"- {markdown(text)}" for text in (*view.not_shown, *(f"left out: {t}" for t in view.not_done)))
    if view.notes:
        yield "### Notes"
        yield "\n".join(f"- {markdown(note)}" for note in view.notes)
    if view.runs:
        yield f"<details><summary>All {len(view.runs)} trials</summary>"
        yield _table(
            ("trial", "outcome", "of what is allowed", ""),
            [(_cell(r.name), _cell(r.outcome), f"{r.worst:.3g}", _cell(r.words)) for r in view.runs],
        )
        yield "</details>"
    for step in steps:
        yield f"{step.what}:\n\n{fenced(step.code, step.language)}"


def _changes(mend: Mend) -> str:
    return f" ({mend.safety}: {mend.changes})" if mend.changes else ""


def _problem(problem: Problem) -> Iterator[str]:
    named = f"{problem.code}: " if problem.code else ""
    yield f"### {markdown(f'{problem.severity} {named}{problem.title or problem.message}')}"
    if problem.place.words:
        yield f"at {markdown(problem.place.words)}"
    if problem.place.source:
        yield fenced(problem.place.source.strip(), "python")
    yield markdown(problem.detail) if problem.title else ""
    yield f"**What to do**: {markdown(problem.help)}" if problem.help else ""
    yield "\n".join(f"- {markdown(fact)}" for fact in problem.evidence)
    page = addresses.link(problem.page)
    yield f"More: [{markdown(problem.code)}]({page})" if page else ""


def _facts(view: View) -> list[tuple[str, ...]]:
    file = ", ".join(f for f in (_code(view.path), size(view.bytes) if view.bytes else "", _made(view)) if f)
    rows = [("trials", view.trials), ("worst difference", view.worst), ("allowed", view.allowed), ("shown", view.shown)]
    rows += [("fixed", f) for f in view.fixed] + [("given up", g) for g in view.given_up] + [("took", duration(view.seconds))]
    told = [("file", file), *((label, _cell(value)) for label, value in rows)]
    return [row for row in told if row[1]]


def _made(view: View) -> str:
    return _cell(f"opset {view.opset}, {view.runtime}".rstrip(", ")) if view.opset else ""


def _sizes(view: View) -> list[tuple[str, ...]]:
    return [
        (", ".join(_code(a) for a in m.places), _code(m.name), "" if m.follows else span(m.low, m.high), _cell(m.why))
        for m in view.moving
    ]


def _cell(text: str) -> str:
    return markdown(text, cell=True)


def _code(text: str) -> str:
    return code(text, cell=True)


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    body = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in body)
