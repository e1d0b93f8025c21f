"""A failing trial as files that anybody can run: the model, the inputs with the outputs expected, and a short script."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx

from torchferry import eager
from torchferry.records import Bound, Case, Tolerance, Translated, Trial
from torchferry.verify.arrays import Array, array, arrays
from torchferry.verify.sides import Call, output_order
from torchferry.verify.trials import Plan

SCRIPT = '''"""{title}

Run with: python reproduce.py (needs numpy and onnxruntime)
"""
import numpy as np
import onnxruntime

data = np.load("trial.npz")
feeds = {{name[3:]: data[name] for name in data.files if name.startswith("in:")}}
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
for output, got in zip(session.get_outputs(), session.run(None, feeds)):
    want = data["out:" + output.name]  # what the PyTorch model gives
    same = want.shape == got.shape and np.allclose(want, got, rtol={rtol:.3g}, atol={atol:.3g}, equal_nan=True)
    print(output.name, "agrees" if same else "DIFFERS")
    print("  expected", want.shape, want.ravel()[:4])
    print("  got     ", got.shape, got.ravel()[:4])
'''


def write(case: Case, directory: Path) -> Path | None:
    """Write model.onnx, trial.npz and reproduce.py for the simplest failing trial; return the script, None if none failed."""
    verified, bound, file = case.value("verify"), case.value("inputs"), case.value("translate")
    if verified is None or not verified.failed:
        return None
    trial = min(verified.failed, key=lambda t: (t.values not in ("example", "random"), sum(t.sizes.values())))
    args = call_of(bound, trial)
    directory.mkdir(parents=True, exist_ok=True)
    _copy_model(Path(file.path), directory / "model.onnx")
    np.savez(directory / "trial.npz", **_data(bound, file, args))  # type: ignore[arg-type]
    script = directory / "reproduce.py"
    script.write_text(_script(trial, verified.tolerance), encoding="utf-8")
    return script


def call_of(bound: Bound, trial: Trial) -> Call:
    """Return the tensors that a trial was run with."""
    if trial.values == "example":
        return bound.args
    if trial.values == "given":
        return bound.examples[int(trial.name.rsplit(" ", 1)[1]) - 1]
    only = trial.name.rpartition(" in ")[2] if " in " in trial.name else ""
    return Plan(trial.sizes, trial.values, trial.seed, only).args(bound)


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
    """Copy a model with the weights that lie beside it."""
    shutil.copyfile(source, target)
    model = onnx.load(str(source), load_external_data=False)
    beside = {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}
    for name in beside:
        shutil.copyfile(source.parent / name, target.parent / name)


def _script(trial: Trial, allowed: Tolerance) -> str:
    told = "; ".join(d.words for d in trial.differences)
    return SCRIPT.format(title=f"Trial {trial.name}: {told}".replace('"""', "'''"), rtol=allowed.rtol, atol=allowed.atol)
