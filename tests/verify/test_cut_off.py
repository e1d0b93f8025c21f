"""Eager that is wrong for want of bits: no fault of the file, no evidence for it; and no excuse for a file that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import torchferry
from torchferry import catalogue
from torchferry.quantised.audit import SixteenBits
from torchferry.records import Job

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def job() -> Job:
    """A quantised layer of the largest weights, and a file that computes what its integers come to."""
    made = catalogue.find("eager-cuts-sums-off").module.bad()
    assert isinstance(made, Job)
    return made


def verified(job: Job, path: Path | None = None) -> Any:
    return torchferry.verify(job.model, path or job.onnx, job.args, check=False)


def test_a_right_file_passes_and_pytorch_is_told_to_be_wrong(job: Job) -> None:
    with SixteenBits():
        result = verified(job)
    assert result.ok
    assert "NUM040" in {d.code for d in result.diagnoses}
    outcomes = {t.outcome for t in result.history.best.value("verify").trials}
    assert {"agree", "eager-cut-off"} <= outcomes
    assert "where torch's own kernels cut sums off on this processor" in " ".join(str(result).split())


def test_a_wrong_file_is_wrong_all_the_same(job: Job, tmp_path: Path) -> None:
    model = onnx.load(str(job.onnx))
    step = next(t for t in model.graph.initializer if t.name == "step")
    step.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(step) * 1.37, "step"))
    onnx.save(model, tmp_path / "wrong.onnx")
    with SixteenBits():
        result = verified(job, tmp_path / "wrong.onnx")
    assert not result.ok
    assert "eager-cut-off" not in {t.outcome for t in result.history.best.value("verify").trials}


def test_a_file_that_cuts_off_too_is_not_excused_where_eager_does_not(job: Job, tmp_path: Path) -> None:
    """What saturates is the file: its largest sum is clipped, as if it had been verified on the wrong processor."""
    model = onnx.load(str(job.onnx))
    sums = next(n for n in model.graph.node if n.op_type == "MatMul")
    clipped = onnx.helper.make_node("Clip", ["raw", "", "most"], list(sums.output))
    sums.output[0] = "raw"
    model.graph.node.insert(list(model.graph.node).index(sums) + 1, clipped)
    model.graph.initializer.append(onnx.numpy_helper.from_array(torch.tensor(4 * 32767.0).numpy(), "most"))
    onnx.save(model, tmp_path / "clipped.onnx")
    audited = verified(job, tmp_path / "clipped.onnx")  # on this processor as it is: right, or cut off in another way
    assert not audited.ok
