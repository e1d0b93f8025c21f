"""How a trial's facts are put into words, for all rules about numbers."""

from __future__ import annotations

from torchferry.records import Diagnosis, Facts, Finding, Location

CAUSES = {
    "guard": "the capture relies on `{guard}`",
    "branch-frozen": "`{code}` was decided once, with the example, and is not decided again",
    "loop-unrolled": "`{code}` was run as often as the example needed, and the file does just that",
    "size-baked": "a number that depends on the size was computed once, with the example",
    "value-baked": "`{code}` was computed once, with the example's values, and is a constant in the file",
    "export-only": "`{code}` goes another way while the model is exported than when it is run",
    "precision": "`{code}` is computed in half precision by torch, and with more digits and a wider range by onnxruntime",
    "constant-dropped": "the constant in `{code}` is missing from the file: an optimiser took it for nothing",
    "op-semantics": "the file's operator does something else than `{code}`",
    "unknown": "where it begins could not be found",
}


def diagnosis(code: str, finding: Finding, message: str, help: str) -> Diagnosis:
    """Return a diagnosis at the finding's place, with the trial as evidence."""
    return Diagnosis(code, message, help, finding.location or Location(), evidence(finding.facts))


def evidence(facts: Facts) -> tuple[str, ...]:
    """Return what was seen, line by line."""
    lines = [f"trial: {facts['trial']}"] if facts.get("trial") else []
    if facts.get("words"):
        lines.append(f"output `{facts['output']}`: {facts['words']}" if facts.get("output") else str(facts["words"]))
    if facts.get("cause") in CAUSES and (facts.get("code") or facts.get("guard") or facts["cause"] in ("unknown", "size-baked")):
        lines.append(cause(facts))
    if facts.get("stage"):
        lines.append(f"stage: {facts['stage']}")
    if facts.get("what") == "value" and facts.get("allowed"):
        lines.append(f"allowed because of: {facts['allowed']}")
    others = [t for t in facts.get("failing", ()) if t != facts.get("trial")]
    return (*lines, *([f"also wrong: {'; '.join(others[:4])}"] if others else ()))


def cause(facts: Facts) -> str:
    """Return the kind of cause in a sentence."""
    return CAUSES[str(facts["cause"])].format(guard=facts.get("guard", ""), code=facts.get("code", ""))


def sizes(facts: Facts) -> str:
    """Return the sizes that are unlike the example's: `length` = 9 (the example has 8)."""
    moved = facts.get("resized") or {}
    example = facts.get("example") or {}
    told = facts.get("made_for", "the example has")
    return ", ".join(f"`{n}` = {s} ({told} {example.get(n, '?')})" for n, s in moved.items())


def output(facts: Facts) -> str:
    """Return the output's name in words."""
    return f"output `{facts['output']}`" if facts.get("output") else "the outputs"
