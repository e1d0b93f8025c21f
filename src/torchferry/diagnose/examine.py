"""Every rule looks at the case."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from torchferry.catalogue import Entry
from torchferry.records import Case, Diagnosis

log = logging.getLogger("torchferry")


def examine(case: Case, entries: Iterable[Entry]) -> list[Diagnosis]:
    """Return the diagnoses of all rules, with code, title and severity filled in from the rule; a title of its own stays."""
    found: list[Diagnosis] = []
    for entry in entries:
        try:
            found += [_signed(d, entry) for d in entry.rule.detect(case)]
        except Exception:  # a rule, perhaps a stranger's plugin, must not take the others down with it
            log.exception("rule %s failed on a case; please report this", entry.code)
    return found


def _signed(diagnosis: Diagnosis, entry: Entry) -> Diagnosis:
    # a rule may soften its severity for one place, never name another code
    severity = diagnosis.severity if diagnosis.severity != "error" else entry.rule.severity
    title = diagnosis.title or entry.rule.title()
    return replace(diagnosis, code=entry.code, slug=entry.slug, title=title, severity=severity)
