"""`torchferry explain`: the pages of the catalogue. Loads neither torch nor onnx."""

from __future__ import annotations

import json
import sys

from torchferry import catalogue
from torchferry.cli.screen import console, knows_unicode
from torchferry.report import explain
from torchferry.report.words import lower_start


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
