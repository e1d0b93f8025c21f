"""The report as one HTML file that needs nothing else: no network, no script; and as a cell of a notebook."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from string import Template

from torchferry.escape import html
from torchferry.records import FAILING, Outcome
from torchferry.report import addresses
from torchferry.report.chart import strip
from torchferry.report.escaped import over, shown
from torchferry.report.next_steps import Next, following
from torchferry.report.view import Problem, Reportable, View, see
from torchferry.report.words import duration, size, span


def render(result: Reportable | View) -> str:
    """Return the report as a whole HTML page."""
    view, css = see(result), f"\n{_resource('page.css')}\n"
    return Template(_resource("page.html")).substitute(
        title=f"torchferry: {_escaped(view).path or 'no file'}",
        css=css,
        style=base64.b64encode(hashlib.sha256(css.encode()).digest()).decode(),
        body=f'<main class="torchferry">\n{"".join(_report(view))}</main>',
    )


def notebook(result: Reportable | View) -> str:
    """Return the report as a piece of HTML for a notebook; its styles reach nothing outside it."""
    return f'<style>{_resource("page.css")}</style><div class="torchferry notebook">{"".join(_report(see(result)))}</div>'


def _report(view: View) -> Iterator[str]:
    return _parts(_escaped(view), [over(step, html, html) for step in following(view)])


def _escaped(view: View) -> View:
    """Return the view with every text in it escaped: what is written below puts tags around them, and escapes nothing."""
    return over(shown(view), html, html)


def _parts(view: View, steps: Iterable[Next]) -> Iterator[str]:
    head, _, rest = view.headline.partition(": ")
    yield f'<div class="verdict {"good" if view.ok else "bad"}">{words(head)}</div>\n'
    yield f"<h1>{words(rest or head)}</h1>\n"
    yield _facts(view)
    yield from (_problem(p) for p in view.problems if p.severity != "note")
    yield _section("Inputs and outputs", _tensors(view))
    yield _section("Sizes that move", _sizes(view))
    yield _section("Repairs", _repairs(view))
    yield _section("Comparison with the eager model", _trials(view))
    yield _section("Not shown", _list((*view.not_shown, *(f"left out: {t}" for t in view.not_done))))
    yield _section("Notes", "".join(_problem(p) for p in view.problems if p.severity == "note") + _list(view.notes))
    yield _section("Next", "".join(f"<p>{words(n.what)}</p><pre><code>{n.code}</code></pre>" for n in steps))
    yield _section("Time and versions", _made_with(view))


def _facts(view: View) -> str:
    file = [f"<code>{view.path}</code>" if view.path else "none was written", size(view.bytes) if view.bytes else ""]
    file += [
        f"opset {view.opset}" if view.opset else "",
        f"IR {view.ir_version}" if view.ir_version else "",
        view.runtime,
    ]
    rows = [("file", ", ".join(f for f in file if f)), ("trials", words(view.trials)), ("worst difference", words(view.worst))]
    rows += [("given up", words(g)) for g in view.given_up]
    rows += [("allowed", words(view.allowed)), ("shown", words(view.shown)), ("took", duration(view.seconds))]
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value) + "</dl>\n"


def _problem(problem: Problem) -> str:
    place = problem.place
    line = ""
    if place.source:
        number = f'<span class="number">{place.line}</span>'
        line = f'<pre><code><span class="line">{number}{place.source.strip()}</span></code></pre>'
    tag = f'<span class="tag {problem.severity}">{problem.code or problem.severity}</span>'
    page = addresses.link(problem.page)
    return (
        f'<section class="card {problem.severity}"><h3>{tag}'
        f"{words(problem.title or problem.message)}</h3>"
        + (f'<p class="quiet">{words(place.words)}</p>' if place.words else "")
        + line
        + (f"<p>{words(problem.detail)}</p>" if problem.title else "")
        + (f"<p><strong>What to do:</strong> {words(problem.help)}</p>" if problem.help else "")
        + _list(problem.evidence)
        + (f'<p class="quiet"><a href="{page}">{problem.code}: more</a></p>' if page else "")
        + "</section>\n"
    )


def _tensors(view: View) -> str:
    rows = [("in", t) for t in view.inputs] + [("out", t) for t in view.outputs]
    return _table(
        ("", "name", "dtype", "shape"), ((way, _code(t.name), t.dtype, _code(f"[{', '.join(t.shape)}]")) for way, t in rows)
    )


def _sizes(view: View) -> str:
    rows = (
        (
            " = ".join(map(_code, m.places)),
            _code(m.name),
            "" if m.follows else span(m.low, m.high),
            words(_why(m.why, m.multiple_of, m.verified)),
        )
        for m in view.moving
    )
    return _table(("axes", "size", "range", ""), rows) + _list(view.fixed)


def _why(why: str, multiple_of: int, verified: str) -> str:
    step = f"multiples of {multiple_of}" if multiple_of > 1 else ""
    return "; ".join(part for part in (step, why, f"tried {verified}" if verified else "") if part)


def _repairs(view: View) -> str:
    told = {p.code: p for p in view.mended}
    cards = []
    for mend in view.repairs:
        cause = told.get(mend.code)
        why = f"<p>{words(cause.message)}</p>" if cause else ""
        where = f'<p class="quiet">{words(cause.place.words)}</p>' if cause and cause.place.words else ""
        changes = f"<p>{mend.safety}: {words(mend.changes)}</p>" if mend.changes else ""
        tag = f'<span class="tag good">{mend.code}</span>'
        cards.append(f'<section class="card mended"><h3>{tag}{words(mend.title)}</h3>{where}{why}{changes}</section>')
    return "".join(cards)


def _trials(view: View) -> str:
    if not view.runs:
        return ""
    rows = (
        (words(r.name), f'<span class="{_role(r.outcome)}">{r.outcome}</span>', f"{r.worst:.3g}", words(r.words))
        for r in view.runs
    )
    table = _table(("trial", "outcome", "of what is allowed", ""), rows)
    return f"{strip(view.runs)}<details><summary>all {len(view.runs)} trials</summary>{table}</details>"


def _role(outcome: Outcome) -> str:
    return "good" if outcome == "agree" else "bad" if outcome in FAILING else "quiet"


def _made_with(view: View) -> str:
    spent = ", ".join(f"{s.stage} {duration(s.seconds)}" for s in view.stages)
    versions = ", ".join(f"{name} {number}" for name, number in view.versions.items())
    return "".join(f'<p class="quiet">{text}</p>' for text in (spent, versions) if text)


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>\n" if body else ""


def _list(items: Iterable[str]) -> str:
    made = "".join(f"<li>{words(item)}</li>" for item in items)
    return f"<ul>{made}</ul>" if made else ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    head = "".join(f"<th>{h}</th>" for h in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>' if body else ""


def _code(text: str) -> str:
    return f"<code>{text}</code>"


def words(text: str) -> str:
    """Return a sentence, escaped before, as HTML: what stands in backticks as code, and its line ends kept."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text).replace("\n", "<br>")


@cache
def _resource(name: str) -> str:
    return files("torchferry.report").joinpath(name).read_text(encoding="utf-8")
