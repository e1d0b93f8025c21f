"""The directory as a whole: does it write what the model writes, what does padding do to it, and what do fewer bits?"""

from __future__ import annotations

from torchferry.progress import Event, tell
from torchferry.records import Case, Finding, Generated, Step, Verified, ranges_shown
from torchferry.records.findings import TextDiffers, WeightsQuantised


def generate(case: Case) -> Step:
    """Return the texts that the case's directory writes, each beside the model's, and a finding where one differs."""
    asked, verified = case.job.generation, case.answer(Verified)
    assert asked is not None  # no other job has this stage
    assert case.file is not None  # it was verified
    directory = asked.settle(case)
    trials = asked.write(directory, verified.tolerance)
    padding = asked.pads(directory, verified.tolerance)
    shown = ranges_shown((*verified.trials, *trials))
    generated = Generated(directory / case.file.name, trials, shown, padding)
    notes = (*asked.notes, *((padding.words(),) if padding is not None else ()))
    found: tuple[Finding, ...] = ()
    if wrong := generated.failed:
        found = (TextDiffers(wrong[0].name, wrong[0].differences, len(wrong), len(trials)),)
    elif asked.quantise is not None:
        precision, changed = asked.quantise(directory)
        tell(Event("tick", "generate", changed))
        found = (WeightsQuantised(precision),)
        notes = (*notes, f"the trials are of the exact file, before its weights were quantised; {changed}")
    return Step("generate", generated, findings=found, notes=notes)
