"""What the pages show is what the tests run: each script, carried out up to the pipeline, asks for the Job of its example."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from google.protobuf.message import DecodeError

import torchferry
from torchferry import catalogue, pipeline
from torchferry.catalogue import Entry
from torchferry.records import Case, Fault, Job, Step
from torchferry.records.findings import CaptureStopped
from torchferry.report.explain import render
from torchferry.report.shown_example import script, shown
from torchferry.translate import register

EXAMPLES = [(e, f) for e in catalogue.load() for kind in ("bad", "good") for f in e.examples(kind).values()]
ALL = [(e, f) for e, f in EXAMPLES if f.__name__ not in getattr(e.module, "SHOWN", {})]


class Arrived(Exception):
    """A Job came as far as the pipeline."""


def asked_for(shown: Path) -> Job:
    """Return the Job that a script hands to the pipeline."""
    with pytest.raises(Arrived) as told:
        runpy.run_path(str(shown))
    (job,) = told.value.args
    return job


def described(job: Job) -> dict[str, Any]:
    """Return what a Job asks for, without what differs with each draw of weights and numbers."""
    told = {name: getattr(job, name) for name in ("input_names", "output_names", "opset", "target", "budget")}
    told |= {name: _kind(getattr(job, name)) for name in ("args", "kwargs", "examples", "feeds", "dynamic_axes", "ranges")}
    told["model"] = type(job.model).__name__
    told["weights"] = _kind(getattr(job.model, "state_dict", dict)())
    told["file"] = _nodes(job.onnx) if job.onnx is not None else None
    told["edits"] = job.edits if job.model is not None else ()  # a script of `check` has them as a comment
    return told


def _nodes(file: Path) -> list[str] | int:
    """Return the operators of a file, or the size of what is none; sizes of files have stacks in them, and so folders."""
    try:
        return [node.op_type for node in onnx.load(str(file), load_external_data=False).graph.node]
    except DecodeError:
        return file.stat().st_size


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray):
        return type(value).__name__, str(value.dtype), tuple(value.shape)
    if isinstance(value, dict):
        return {key: _kind(inner) for key, inner in value.items()}
    return [_kind(v) for v in value] if isinstance(value, list | tuple) else value if value is None else repr(value)


@pytest.mark.parametrize(("entry", "example"), [pytest.param(e, f, id=f"{e.code}-{f.__name__}") for e, f in ALL])
def test_the_script_asks_for_the_job_of_its_example(
    entry: Entry, example: Callable[[], Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heal(job: Job, *_: Any, **__: Any) -> None:
        raise Arrived(job)

    text = script(example)
    assert "Job" not in text
    with entry.rule.premise():
        wanted = described(example())
        monkeypatch.setattr(pipeline, "heal", heal)
        monkeypatch.chdir(tmp_path)
        Path("shown.py").write_text(text, encoding="utf-8")
        assert described(asked_for(tmp_path / "shown.py")) == wanted


@pytest.mark.parametrize("entry", catalogue.load(), ids=lambda e: e.code)
def test_explain_shows_the_examples_as_the_page_does(entry: Entry) -> None:
    examples = [f for kind in ("bad", "good") for f in entry.examples(kind).values()]
    assert examples
    assert all(shown(f) in render(entry) for f in examples)


def test_code_that_is_offered_for_a_custom_operator_runs_as_it_is_pasted() -> None:
    operator = torch.library.custom_op("torchferry_pasted::halved", mutates_args=(), schema="(Tensor x) -> Tensor")
    said = "There was no fake impl registered for <CustomOpDef(torchferry_pasted::halved)>"
    stopped = Step("capture", fault=Fault("RuntimeError", said), findings=(CaptureStopped("halved(x)", said, said),))
    (found,) = catalogue.find("CAP012").rule.detect(Case(Job(), (stopped,)))
    code = "\n".join(found.evidence)
    exec(code, {"torch": torch, "torchferry": torchferry, "halved": operator(lambda x: x / 2)})
    assert torch.ops.torchferry_pasted.halved.default in register.decompositions()
    register.forget_op("torchferry_pasted::halved")
