"""Keep a repair only if the new case is proven better than the best so far."""

from __future__ import annotations

from dataclasses import replace

from torchferry.records import GUESSED, Captured, Case, Diagnosis, History, Repair, Safety, Step, Translated


def judge(history: History, diagnosis: Diagnosis, repair: Repair, case: Case, allow: Safety = "safe") -> History:
    """Return the history with one more case; the repair is kept if the case is better, and no guess that nobody asked for."""
    if not better(case, history, diagnosis) or (allow == "safe" and _guessed(case)):
        told = replace(history, best=_with_failed_repair(history.best, diagnosis, repair, case))
        return replace(record(told, case), tried=(*history.tried, repair))
    mended = (*history.mended, replace(diagnosis, fixed=True))
    return replace(accept(history, repair, case), mended=mended)


def accept(history: History, repair: Repair, case: Case) -> History:
    """Return the history with a case that is the best so far."""
    cases = (*(_slim(c) for c in history.cases), case)
    return replace(history, cases=cases, best=case, tried=(*history.tried, repair), kept=(*history.kept, repair))


def record(history: History, case: Case) -> History:
    """Return the history with a case that lost."""
    return replace(history, cases=(*history.cases, _slim(case)))


def advance(case: Case, before: Case) -> bool:
    """Say whether a case comes further than another, has fewer errors, or fewer trials that fail."""
    return _standing(case) > _standing(before)


def better(case: Case, history: History, mended: Diagnosis) -> bool:
    """Say whether a case is an advance: further, or with fewer errors, or the fault gone and only new ones left.

    The last clause lets a model with several faults in one stage be mended one by one: capture shows only the first.
    A fault that was seen before does not count as new, so the loop cannot go round in circles.
    """
    if _standing(case) != _standing(history.best):
        return _standing(case) > _standing(history.best)
    seen = {_identity(d) for c in history.cases for d in c.diagnoses}
    gone = _identity(mended) not in {_identity(d) for d in case.diagnoses}
    explained = not any(d.code == "RUN900" for d in case.errors)  # a failure without a cause is no step on from one with a cause
    return gone and explained and all(_identity(d) not in seen or d in history.best.errors for d in case.errors)


def broken_off(history: History, what: str, seconds: float) -> History:
    """Return the history with a word, at the first error, on what there was no more time for."""
    if not history.best.errors:
        return history
    words = f"{what} was broken off after {seconds:.0f} s"
    return replace(history, best=_with_words(history.best, history.best.errors[0], words))


def _with_failed_repair(best: Case, mended: Diagnosis, repair: Repair, case: Case) -> Case:
    """Return the best case with a word on a repair that did not help, where it stopped before there was a file."""
    fault = case.steps[-1].fault if case.steps else None
    if fault is not None and fault.text:
        return _with_words(best, mended, f"tried: {repair.title}; {fault.line[:400]}")
    return _with_words(best, mended, f"tried: {repair.title}; {guess[0].message}") if (guess := _guessed(case)) else best


def _guessed(case: Case) -> tuple[Diagnosis, ...]:
    """Return what says of a mended file that nothing shows the mend to be right."""
    return tuple(d for d in case.diagnoses if d.code == GUESSED)


def _with_words(best: Case, about: Diagnosis, words: str) -> Case:
    told = tuple(replace(d, evidence=(*d.evidence, words)) if d == about else d for d in best.diagnoses)
    return replace(best, diagnoses=told)


def _standing(case: Case) -> tuple[int, int, int, int]:
    """How far a case got, how few errors it has, and how few trials failed."""
    answered = sum(step.fault is None for step in case.steps)
    opened = getattr(case.value("check"), "reached", 0)  # a file that opens, or even runs, has come further
    return answered, opened, -len(case.errors), -len(case.failed)


def _identity(diagnosis: Diagnosis) -> tuple[str, str]:
    return diagnosis.code, str(diagnosis.location)


def _slim(case: Case) -> Case:
    """Return a case without its programs and graphs, which may be large; a case that lost is kept for the record only."""
    return replace(case, steps=tuple(_slim_step(step) for step in case.steps))


def _slim_step(step: Step) -> Step:
    value = step.value
    if isinstance(value, Captured):
        value = replace(value, program=None)
    elif isinstance(value, Translated):
        value = replace(value, model=None)
    return replace(step, value=value, remedy=None)
