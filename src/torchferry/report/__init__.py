"""Stage 9 of 9 · report: History -> something to read. `view.py` is the one presentation model behind every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchferry.errors import UsageError, did_you_mean
from torchferry.escape import written_json

if TYPE_CHECKING:
    from torchferry.report.view import Reportable, View

FORMATS = ("text", "json", "markdown", "html", "sarif")


def render(result: Reportable | View, format: str = "text") -> str:
    """Return a result, or a view read back from JSON, as "text", "json", "markdown", "html" or "sarif"."""
    from torchferry.report import html, json_, markdown, sarif, text

    match format:
        case "text":
            return text.render(result)
        case "json":
            return written_json(json_.to_json(result), indent=2, ensure_ascii=False) + "\n"
        case "markdown":
            return markdown.render(result)
        case "html":
            return html.render(result)
        case "sarif":
            return written_json(sarif.to_sarif(result), indent=2, ensure_ascii=False) + "\n"
    raise UsageError(f"a report is {', '.join(FORMATS)}, not `{format}`{did_you_mean(format, FORMATS)}")


def from_json(text: str) -> View:
    """Return the view written in a JSON report; `render` takes it as it takes a result."""
    from torchferry import intake
    from torchferry.report import json_

    return json_.from_json(intake.parsed(text, "the report"))
