"""READ FIRST: the pipeline. `run` takes a Job through the stages; `heal` repairs the Job and runs it again.

    inputs -> capture -> translate -> check -> verify (-> generate) -> diagnose -> repair (edits the Job, runs again) -> report

A stage is a function from the Case so far to a Step. A fault in the user's model is a value in that Step, so the whole
story is there when the diagnosis is made; a repair is data that edits the Job, so that the same stages prove it.
Only a Job whose file completes a directory that generates has the stage in brackets, which it reaches when its trials agree.
Where a stage was stopped, `repair/search/` tries ways past that first; an answer that it gets is not asked for again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from torchferry.deadline import TookTooLong, time_limit
from torchferry.errors import TorchferryError, UsageError
from torchferry.files import in_words, is_lack_of_room, why
from torchferry.progress import Event, tell
from torchferry.records import (
    Bound,
    Captured,
    Case,
    Checked,
    Edit,
    Fault,
    Generated,
    History,
    Job,
    Repair,
    Safety,
    Stage,
    Step,
    Translated,
    Verified,
)

MOST_REPAIRS = 16  # a job that needs more has something else wrong with it
WINDING_UP = 60.0  # seconds that a stage may take to put everything back when its time is over
PATIENCE = 120.0  # seconds for all repairs together, or four times as long as the first pass took


def run(job: Job, known: tuple[Step, ...] = ()) -> Case:
    """Return one pass over the pipeline; `known` are answers of its first stages that still hold."""
    case = Case(job, known)
    for stage in job.stages[len(known) :]:
        case = case.plus(_answer(stage, case))
        if case.blocked or case.failed:  # the next stage has nothing to work on; mere findings do not block
            break
    from torchferry.diagnose import diagnose

    return replace(case, diagnoses=diagnose(case))


def heal(job: Job, allow: Safety | None = "safe") -> History:
    """Return the job's history: run it, then try what may mend it."""
    case = run(_in_own_folder(job, job, 0))
    return mend(History(cases=(case,), best=case), job, allow)


def mend(history: History, job: Job, allow: Safety | None) -> History:
    """Return the history after a first pass with the repairs on offer tried, and each kept that is proven better.

    Where none is left and sizes that nobody asked for are to blame, less is declared, if that can be verified.
    """
    case = history.best
    if allow is None or (case.ok and not case.diagnoses):
        return history
    once = sum(step.seconds for step in case.steps)
    repaired = _repaired(history, job, allow, time.perf_counter() + max(PATIENCE, 4 * once))
    return repaired if repaired.best.ok else _narrowed(repaired, job, allow, time.perf_counter() + max(PATIENCE, 3 * once))


def _repaired(history: History, job: Job, allow: Safety, until: float) -> History:
    """Return the history after all repairs that are on offer, allowed and affordable."""
    from torchferry.repair import broken_off, judge, next_repair

    began = time.perf_counter()
    for _ in range(MOST_REPAIRS):
        offer = next_repair(history, allow)
        if offer is None:
            break
        if time.perf_counter() >= until:
            return broken_off(history, "the search for a repair", time.perf_counter() - began)
        diagnosis, repair = offer
        history = judge(history, diagnosis, repair, _rerun(history, job, repair, until), allow)
    return history


def _narrowed(history: History, job: Job, allow: Safety, until: float) -> History:
    """Return the history with less declared, as little less as can be verified; unchanged if nothing can."""
    from torchferry.repair import accept, advance, broken_off, narrowings, record, wider

    best, tried, began = history, set[str](), time.perf_counter()
    while not best.best.ok and len(tried) < MOST_REPAIRS:
        offer = next((r for r in narrowings(best) if str(r.edit) not in tried), None)
        if offer is None:
            return history
        if time.perf_counter() >= until:
            return broken_off(history, "the search for sizes that can be declared", time.perf_counter() - began)
        tried.add(str(offer.edit))
        case = _rerun(best, job, offer, until)
        best = _repaired(accept(best, offer, case), job, allow, until) if advance(case, best.best) else record(best, case)
    for offer in wider(best) if best.best.ok else ():
        if time.perf_counter() < until:
            case = _rerun(best, job, offer, until)
            best = accept(best, offer, case) if case.ok else record(best, case)
    return best if best.best.ok else history


def _rerun(history: History, job: Job, repair: Repair, until: float) -> Case:
    """Return the best case with one more edit, run anew from the stage that it concerns."""
    tell(Event("repair", repair.edit.stage, f"{repair.code}: {repair.title}"))
    edited = _in_own_folder(history.best.job.plus(repair.edit), job, len(history.cases))
    left = max(1.0, until - time.perf_counter())
    edited = replace(edited, budget=replace(job.budget, time_limit=min(job.budget.time_limit, left)))
    return run(edited, _still_true(history.best, repair.edit))


def _in_own_folder(job: Job, whole: Job, number: int) -> Job:
    """Return the job with a folder of its own in the workspace: a repair that is rejected must not leave its file behind."""
    if whole.workspace is None:
        return job
    folder = whole.workspace / str(number)
    with in_words(whole.workspace):
        folder.mkdir(exist_ok=True)
    return replace(job, workspace=folder)


def _answer(stage: Stage, case: Case) -> Step:
    """Return a stage's answer with the time it took; what it raises about the model becomes a fault."""
    tell(Event("begin", stage))
    began = time.perf_counter()
    try:
        with time_limit(case.job.budget.time_limit, stage, again=WINDING_UP):
            step = _carried_out(stage, case)
    except TorchferryError:  # the user's call, or our own installation, is at fault: no use in going on
        raise
    except (Exception, TookTooLong) as error:  # torch, onnx and onnxruntime may raise anything about a model
        if isinstance(error, OSError) and is_lack_of_room(error):
            raise UsageError(f"stage `{stage}` cannot write its files: {why(error)}") from error
        step = Step(stage, fault=Fault.of(error))
    step = replace(step, seconds=time.perf_counter() - began)
    fine = step.fault is None and not getattr(step.value, "failed", ())  # findings may be mere remarks
    tell(Event("end", stage, _words(step), step.seconds, ok=fine))
    return step


def _carried_out(stage: Stage, case: Case) -> Step:
    """Return a stage's answer, with what a search found where it was stopped; torch is loaded only if there is a model."""
    if case.job.model is None:
        return _searched(case, _stage(stage)(case))
    from torchferry.eager import balanced

    with balanced():
        return _searched(case, _stage(stage)(case))


def _searched(case: Case, step: Step) -> Step:
    """Return an answer with what a search for ways past the stage's troubles adds to it."""
    if step.fault is None and not step.findings:
        return step
    from torchferry.repair.search import searched

    return searched(case, step)


def _words(step: Step) -> str:
    """Return what there is to say of a stage's answer, in a few words for whoever watches."""
    match step.value:
        case Bound(signature=signature):
            return f"{_count(len(signature.inputs), 'input')}, {_count(len(signature.dims), 'size')} free to move"
        case Captured(strategy=strategy):
            return strategy
        case Translated(opset=opset):
            return f"opset {opset}"
        case Checked(runtime=runtime):
            return runtime
        case Verified(trials=trials):
            return _count(len(trials), "trial")
        case Generated(trials=trials):
            return f"{_count(len(trials), 'text')} written"
    return ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _stage(stage: Stage) -> Callable[[Case], Step]:
    """Return the function behind a stage's name, loading torch or onnx only when it is needed."""
    match stage:
        case "inputs":
            from torchferry.inputs import bind as function
        case "capture":
            from torchferry.capture import capture as function
        case "translate":
            from torchferry.translate import translate as function
        case "check":
            from torchferry.check import check as function
        case "verify":
            from torchferry.verify import verify as function
        case "generate":
            from torchferry.generate import generate as function
    return function


def _still_true(case: Case, edit: Edit) -> tuple[Step, ...]:
    """Return the answers that are known with one more edit: of the stages before its own, and of that where a search has it."""
    before = case.job.stages[: case.job.stages.index(edit.stage)]
    stopped = case.step(edit.stage)
    remedy = stopped.remedy if stopped is not None else None
    found = [remedy.answer] if remedy is not None and remedy.edit == edit else []
    return (*(step for step in case.steps if step.stage in before), *found)
