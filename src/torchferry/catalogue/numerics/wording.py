"""How a trial's facts are put into words, for all rules about numbers."""

from __future__ import annotations

from torchferry.records import Diagnosis, Location
from torchferry.records.findings import AboutTrial, SeenTrial

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


def diagnosis(code: str, finding: AboutTrial, message: str, help: str) -> Diagnosis:
    """Return a diagnosis at the finding's place, with the trial as evidence."""
    return Diagnosis(code, message, help, finding.location or Location(), evidence(finding.seen))


def evidence(seen: SeenTrial) -> tuple[str, ...]:
    """Return what was seen, line by line."""
    blame, lines = seen.blame, [f"trial: {seen.trial}"] if seen.trial else []
    if seen.words:
        lines.append(f"output `{seen.output}`: {seen.words}" if seen.output else seen.words)
    if blame.cause in CAUSES and (blame.code or blame.guard or blame.cause in ("unknown", "size-baked")):
        lines.append(cause(seen))
    if blame.stage:
        lines.append(f"stage: {blame.stage}")
    if seen.what == "value" and seen.allowed:
        lines.append(f"allowed because of: {seen.allowed}")
    others = [t for t in blame.failing if t != seen.trial]
    return (*lines, *([f"also wrong: {'; '.join(others[:4])}"] if others else ()))


def cause(seen: SeenTrial) -> str:
    """Return the kind of cause in a sentence."""
    return CAUSES[seen.blame.cause].format(guard=seen.blame.guard, code=seen.blame.code)


def sizes(seen: SeenTrial) -> str:
    """Return the sizes that are unlike the example's: `length` = 9 (the example has 8)."""
    return ", ".join(f"`{n}` = {s} ({seen.made_for} {seen.example.get(n, '?')})" for n, s in seen.resized.items())


def output(seen: SeenTrial) -> str:
    """Return the output's name in words."""
    return f"output `{seen.output}`" if seen.output else "the outputs"
