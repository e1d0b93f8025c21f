"""The page behind a code, as Markdown: title, what happened, what to do instead, and an example that shows it."""

from __future__ import annotations

from typing import Any

from torchferry.catalogue import Entry
from torchferry.report import addresses
from torchferry.report.shown_example import shown
from torchferry.report.words import lower_start


def render(entry: Entry) -> str:
    """Return the page of a diagnosis as Markdown."""
    rule = entry.rule
    facts = f"`{entry.slug}`, found in {rule.stage}, {rule.severity}, since {rule.since}"
    parts = [f"# {entry.code}: {lower_start(rule.title())}", facts, rule.page()]
    for kind, heading in (("bad", "## An example"), ("good", "## The same, mended by hand")):
        examples = entry.examples(kind).values()
        if examples:
            parts += [heading, *map(shown, examples)]
    return "\n\n".join(p for p in parts if p) + "\n"


def as_dict(entry: Entry) -> dict[str, Any]:
    """Return a diagnosis as JSON-able data."""
    rule = entry.rule
    return {
        "code": entry.code,
        "slug": entry.slug,
        "title": rule.title(),
        "stage": rule.stage,
        "severity": rule.severity,
        "since": rule.since,
        "page": rule.page(),
        "address": addresses.of(entry.code),
    }
