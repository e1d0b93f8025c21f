"""The report as plain text: what `print(result)` shows. On a terminal the same words have colours.

A line is a tuple of spans, each some text and the role it plays; roles become colours in `styled`, and nothing in `render`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchferry.escape import visible
from torchferry.report.escaped import shown
from torchferry.report.next_steps import Next, following
from torchferry.report.view import Problem, Reportable, View, see
from torchferry.report.words import duration, plural, size

if TYPE_CHECKING:
    from rich.text import Text

Span = tuple[str, str]  # (text, role)
Line = tuple[Span, ...]

WIDTH = 100
LABEL = 11  # how far the values stand to the right of their labels
SHOWN_WHOLE = 3  # problems beyond these get one line each, so that the first stays on the screen
EVIDENCE = 4
LONGEST = 600  # characters of a message that still help; what foreign libraries say can be pages long

STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "label": "dim",
    "code": "bold",
    "mark": "red",
    "quiet": "dim",
}


def render(result: Reportable | View, *, width: int = WIDTH) -> str:
    """Return the report as plain text."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines(result, width)) + "\n"


def styled(result: Reportable | View, *, width: int = WIDTH) -> Text:
    """Return the same words for a terminal, with colours."""
    from rich.text import Text

    parts = [Text.assemble(*((text, STYLES.get(role, "")) for text, role in line)) for line in lines(result, width)]
    return Text("\n").join(parts)


def lines(result: Reportable | View, width: int) -> Iterator[Line]:
    """Yield the report line by line."""
    for line in _lines(shown(result), following(see(result)), width):
        yield tuple((visible(text), role) for text, role in line)  # where a line was folded, it begins with another word


def _lines(view: View, steps: Sequence[Next], width: int) -> Iterator[Line]:
    """Yield the verdict, what is wrong, what holds, what to do next."""
    head, _, rest = view.headline.partition(": ")
    role = "good" if view.ok else "bad"
    yield ((head, role), (f": {rest}" if rest else "", ""))
    wrong = [p for p in view.problems if p.severity != "note"]
    for number, problem in enumerate(wrong[:SHOWN_WHOLE]):
        yield ()
        yield from _problem(problem, width, facts=EVIDENCE if number == 0 else 0)
    if left := wrong[SHOWN_WHOLE:]:
        yield ()
        yield from (
            ((f"{_label(p)}: ", p.severity), (f"{p.title}", ""), (f" ({p.place.words})" if p.place.words else "", "quiet"))
            for p in left
        )
    yield ()
    yield from _facts(view, width)
    if steps:
        yield ()
    for step in steps:
        yield ((f"  {step.what}", "label"),)
        yield from (((f"    {line}", "code"),) for line in step.code.splitlines())


def _label(problem: Problem) -> str:
    return f"{problem.severity}[{problem.code}]" if problem.code else problem.severity


def _problem(problem: Problem, width: int, facts: int) -> Iterator[Line]:
    """Yield a diagnosis: what, where with the source line marked, what to do, and what was seen."""
    yield ((_label(problem), problem.severity), (": ", ""), (problem.title or problem.message, "code"))
    place = problem.place
    if place.words:
        yield (("  --> ", "label"), (place.words, ""))
    if place.source:
        number, code = str(place.line), textwrap.dedent(place.source)
        margin = " " * len(number)
        yield ((f"   {margin} |", "label"),)
        yield ((f"   {number} | ", "label"), (f"  {code}", ""))
        yield ((f"   {margin} | ", "label"), (f"  {'^' * min(len(code), width - 12)}", "mark"))
    if problem.title:
        yield from _wrapped("  ", problem.detail, width)
    if problem.help:
        yield from _wrapped("  help: ", problem.help, width)
    for fact in problem.evidence[:facts]:
        yield from _wrapped("  seen: ", fact, width)
    if left := problem.evidence[facts:]:
        yield ((f"  and {plural(len(left), 'more fact')} in the JSON and HTML reports", "quiet"),)


def _facts(view: View, width: int) -> Iterator[Line]:
    """Yield the closing block."""
    made = view.ok or view.kind != "export"
    if view.path and made:
        facts = [view.path, size(view.bytes) if view.bytes else "", f"opset {view.opset}" if view.opset else ""]
        facts += [f"IR {view.ir_version}" if view.ir_version else "", view.runtime]
        yield from _row("file", [", ".join(f for f in facts if f)], width)
    elif view.kind == "export":
        yield from _row("file", ["none was written; one that was there before is untouched"], width)
    if view.ok or view.runs:  # before that they are a guess that nothing was done with
        yield from _row("sizes", [m.words + (f"; tried {m.tried}" if m.tried else "") for m in view.moving], width)
        yield from _row("fixed", view.fixed, width)
        yield from _row("given up", view.given_up, width)
    yield from _row("trials", [view.trials], width)
    yield from _row("worst", [view.worst], width)
    yield from _row("allowed", [view.allowed], width)
    yield from _row("shown", [view.shown], width)
    yield from _row("not shown", [_few(view.not_shown)], width)
    yield from _row("left out", view.not_done, width)
    label = "repairs" if view.ok or view.kind != "check" or view.mended else "would mend"  # written, if only as a guess
    mends = [f"{m.code}  {m.title}" + (f" ({m.safety}: {m.changes})" if m.changes else "") for m in view.repairs]
    yield from _row(label, mends, width)
    noted = [f"{p.code}  {p.message}" for p in view.problems if p.severity == "note"]
    yield from _row("notes", [*noted, *view.notes], width)
    spent = ", ".join(f"{s.stage} {s.seconds:.1f}" for s in view.stages if s.seconds)
    if view.seconds:
        yield from _row("took", [duration(view.seconds) + (f" (last pass: {spent})" if spent else "")], width)


def _few(words: tuple[str, ...]) -> str:
    """Return the first of several, and how many there are."""
    return words[0] + (f"; and {len(words) - 1} more" if len(words) > 1 else "") if words else ""


def _row(label: str, values: Iterable[str], width: int) -> Iterator[Line]:
    """Yield a label and its values under each other; nothing when there are none."""
    for value in values:
        if not value:
            continue
        first = True
        for part in _fold(value, width - LABEL - 4):  # later lines stand two further in
            yield ((f"  {label:<{LABEL}}", "label"), (part if first else f"  {part}", ""))
            label, first = "", False


def _wrapped(lead: str, text: str, width: int) -> Iterator[Line]:
    """Yield a paragraph behind a lead such as `  help: `, later lines standing under its first."""
    for part in _fold(text, width - len(lead)):
        yield ((lead, "label"), (part, ""))
        lead = " " * len(lead)


def _fold(text: str, width: int) -> Iterator[str]:
    """Yield a text in lines of at most `width`; line ends in it are kept, and code in it stays in one piece."""
    short = text if len(text) <= LONGEST else text[: LONGEST - 4].rstrip() + " ..."
    for line in short.splitlines():
        yield from textwrap.wrap(line, max(width, 30), break_long_words=False, break_on_hyphens=False, drop_whitespace=True) or [
            ""
        ]
