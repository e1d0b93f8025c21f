"""A failing trial as files that anybody can run: the smallest model that shows it, its inputs, and a short script.

The smallest model is the part of the file between values that are right and the first wrong one; where no such part can be
proven to be at fault, the whole file, and the script says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx

from torchferry import eager
from torchferry.escape import prose
from torchferry.files import in_words, publish_directory, weights_named, workspace
from torchferry.records import Bound, Case, Fault, Tolerance, Translated, Trial, Verified
from torchferry.records.kinds_of_values import AS_GIVEN, SIMPLEST
from torchferry.verify.arrays import Array, array, arrays
from torchferry.verify.coverage.lively import lively, redrawable
from torchferry.verify.coverage.weights import weights
from torchferry.verify.explain.shrink import shrink
from torchferry.verify.explain.smallest import FilePart, smallest
from torchferry.verify.judge.trial import Bench, judge
from torchferry.verify.run.both_sides import Call, open_sides, output_order
from torchferry.verify.stage import laid_out
from torchferry.verify.trials.plans import TrialPlan, example_sizes
from torchferry.worker import Worker

SCRIPT_NAME = "reproduce.py"
SCRIPT = '''"""{title}

Run with: python reproduce.py, from anywhere (needs numpy and onnxruntime)
"""
import os

import numpy as np
import onnxruntime

here = os.path.dirname(os.path.abspath(__file__))
data = np.load(os.path.join(here, "trial.npz"))
feeds = {{name[3:]: data[name] for name in data.files if name.startswith("in:")}}
session = onnxruntime.InferenceSession(os.path.join(here, "model.onnx"), providers=["CPUExecutionProvider"])
for output, got in zip(session.get_outputs(), session.run(None, feeds)):
    want = data["out:" + output.name]  # what the PyTorch model gives
    same = want.shape == got.shape and np.allclose(want, got, rtol={rtol:.3g}, atol={share:.3g} * want.std(), equal_nan=True)
    print(output.name, "agrees" if same else "DIFFERS")
    print("  expected", want.shape, want.ravel()[:4])
    print("  got     ", got.shape, got.ravel()[:4])
'''


def write(case: Case, directory: Path) -> Path | None:
    """Write model.onnx, trial.npz and reproduce.py for the simplest failing trial; return the script, None if none failed."""
    verified = case.value("verify")
    if verified is None or not verified.failed:
        return None
    trial = min(verified.failed, key=lambda t: (t.weights, t.values not in SIMPLEST, sum(t.sizes.values())))
    args = call_of(case.answer(Bound), trial)
    with in_words(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with workspace(near=directory / SCRIPT_NAME) as folder:
            _write(case, trial, args, folder)
            publish_directory(folder, directory, last=SCRIPT_NAME)
    return directory / SCRIPT_NAME


def _write(case: Case, trial: Trial, args: Call, directory: Path) -> None:
    verified, bound = case.answer(Verified), case.answer(Bound)
    with _at(case, trial) as bench:
        part = _part(case, bench, trial, args) if bench is not None else None
        if part is None:
            file = bench.sides.file if bench is not None else case.answer(Translated)
            _copy_model(Path(file.path), directory / "model.onnx")
            data = _data(bench.sides.bound if bench is not None else bound, file, args)
            words = "model.onnx is the whole file: no part of it could be proven to be all that is wrong."
        else:
            onnx.save(part.model, str(directory / "model.onnx"))
            data = {f"in:{n}": a for n, a in part.feeds.items()} | {f"out:{n}": a for n, a in part.want.items()}
            nodes = len(part.model.graph.node)
            words = f"model.onnx is {nodes} node{'s' if nodes > 1 else ''} of the file, fed as in this trial: {part.words}."
    np.savez(directory / "trial.npz", **data)  # type: ignore[arg-type]
    (directory / SCRIPT_NAME).write_text(_script(trial, verified.tolerance, words), encoding="utf-8")


@contextmanager
def _at(case: Case, trial: Trial) -> Iterator[Bench | None]:
    """Give what a trial was run on: both sides, with redrawn weights where it had these; None where they cannot be had again."""
    bound, file = case.answer(Bound), case.answer(Translated)
    with Worker(time_limit=case.job.budget.time_limit) as worker:
        sides = open_sides(bound, file, worker)
        laid = sides if isinstance(sides, Fault) else laid_out(case, sides)
        if isinstance(sides, Fault) or isinstance(laid, Fault):
            yield None
        elif not trial.weights:
            yield laid[0]
        else:
            known = weights(sides)
            with lively(laid[0], known, redrawable(known, bound), trial.weights) as redrawn:
                yield None if isinstance(redrawn, str) else redrawn


def _part(case: Case, bench: Bench, trial: Trial, args: Call) -> FilePart | None:
    """Return the smallest part of the file that shows the failure, if there is one."""
    given = _given(bench.sides.bound, trial, args)
    plan = TrialPlan(_moved(trial, bench.sizes), trial.values, trial.seed, only=_only(trial), given=given)
    failing = judge(bench, plan, args)
    return smallest(case, bench, shrink(bench, failing)) if failing.trial.outcome == "differ" else None


def _moved(trial: Trial, example: dict[str, int]) -> dict[str, int]:
    return {n: s for n, s in trial.sizes.items() if example.get(n) != s}


def _given(bound: Bound, trial: Trial, args: Call) -> Call | None:
    return args if trial.values in AS_GIVEN or trial.call is not None else None


def _only(trial: Trial) -> str:
    """Return the one input that got the trial's values, or nothing."""
    return trial.name.rpartition(" in ")[2] if " in " in trial.name else ""


def call_of(bound: Bound, trial: Trial) -> Call:
    """Return the tensors that a trial was run with."""
    if trial.call is not None:
        return trial.call
    if trial.values == "example" and dict(trial.sizes) == example_sizes(bound):
        return bound.args
    if trial.values == "given":
        return bound.examples[int(trial.name.rsplit(" ", 1)[1]) - 1]
    return TrialPlan(trial.sizes, trial.values, trial.seed, _only(trial)).args(bound)


def _data(bound: Bound, file: Translated, args: Call) -> dict[str, Array]:
    taken = {s.name for s in file.inputs}
    names = [s.name for s in bound.signature.inputs]
    data = {f"in:{n}": array(a) for n, a in zip(names, args, strict=True) if n in taken}
    want = arrays(eager.call(eager.fresh(bound.module), args))
    given = [o.name for o in file.outputs]
    for place, values in zip(output_order(bound.outputs, given), want, strict=False):
        data[f"out:{given[place]}"] = values
    return data


def _copy_model(source: Path, target: Path) -> None:
    """Copy a model with the weights that lie beside it; those in folders below go into the file."""
    beside = weights_named(source)
    if any(Path(name).name != name for name in beside):
        onnx.save(onnx.load(str(source)), str(target))
        return
    for name, to in {source.name: target.name, **{name: name for name in beside}}.items():
        shutil.copyfile(source.parent / name, target.parent / to)


def _script(trial: Trial, allowed: Tolerance, words: str) -> str:
    told = "; ".join(d.words for d in trial.differences)
    title = prose(f"Trial {trial.name}: {told}\n\n{words}").replace("\\", "/").replace('"""', "'''")
    return SCRIPT.format(title=title, rtol=allowed.rtol, share=allowed.share)
