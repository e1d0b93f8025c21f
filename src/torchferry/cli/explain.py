"""`torchferry explain`: the pages of the catalogue, and what others' errors mean. Loads no torch."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

from torchferry import catalogue
from torchferry.cli.screen import console, knows_unicode
from torchferry.errors import UsageError
from torchferry.escape import prose
from torchferry.report import explain
from torchferry.report.words import lower_start

if TYPE_CHECKING:
    from torchferry.messages import Explained

UNKNOWN = 1  # the exit code for a text that nothing here explains


def page(code: str, form: str) -> int:
    """Write the page behind a code to stdout, and return the exit code."""
    entry = catalogue.find(code)
    if form == "json":
        print(json.dumps(explain.as_dict(entry), indent=2))
        return 0
    text = explain.render(entry)
    out = console(sys.stdout)
    if form == "text" and out.is_terminal and knows_unicode(sys.stdout):
        from rich.markdown import Markdown
        from rich.padding import Padding

        title, _, rest = text.partition("\n")
        out.print(f" {title.lstrip('# ')}", style="bold")  # rich would put it in the middle of the line
        out.print(Padding(Markdown(rest, code_theme="ansi_dark"), (1, 1)), width=min(out.width, 100), soft_wrap=False)
    else:
        out.out(text, end="")
    return 0


def message(text: str, form: str) -> int:
    """Write what an error of another tool means to stdout, and return the exit code: 1 where nothing here knows it."""
    from torchferry.messages import explained

    if not text.strip():
        raise UsageError("there is no text to explain: give the error with `--error`, or a traceback through stdin")
    found = explained(text)
    if form == "json":
        print(json.dumps(asdict(found), indent=2))
    else:
        console(sys.stdout).out(told(found), end="")
    return 0 if found else UNKNOWN


def told(found: Explained) -> str:
    """Return an explanation as lines of text."""
    lines = [
        ("cause", found.cause or "unknown"),
        ("", found.means),
        ("do", found.do),
        ("page", f"torchferry explain {found.code}" if found.code else ""),
        ("next", found.command),
    ]
    return "".join(_block(head, prose(words)) for head, words in lines if words)


def _block(head: str, words: str) -> str:
    return textwrap.fill(words, 100, initial_indent=f"{head:<7}", subsequent_indent=" " * 7, break_on_hyphens=False) + "\n"


def listing(form: str) -> int:
    """Write all diagnoses to stdout, one on each line, and return the exit code."""
    entries = catalogue.load()
    if form == "json":
        print(json.dumps([explain.as_dict(e) for e in entries], indent=2))
        return 0
    out = console(sys.stdout)
    if form == "markdown":
        out.out("| code | slug | what is wrong |\n|---|---|---|")
        for entry in entries:
            out.out(f"| {entry.code} | {entry.slug} | {lower_start(entry.rule.title())} |")
        return 0
    from rich.text import Text

    wide = max((len(e.slug) for e in entries), default=0)
    for entry in entries:
        out.print(Text.assemble((entry.code, "bold"), f"  {entry.slug:<{wide}}  ", (lower_start(entry.rule.title()), "dim")))
    return 0
