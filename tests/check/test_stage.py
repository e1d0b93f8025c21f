"""The check stage on files that we made ourselves: as promised, good ONNX, and implemented by the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from broken_files import linear, model, node, value

from torchferry.check import check
from torchferry.check.reading.promises import broken
from torchferry.edits.check import Decompose
from torchferry.records import Bound, Case, Edit, Job, Location, Signature, Step, TensorSpec, Translated
from torchferry.records.findings import ComputedInOtherType, NoKernel


def bound(**more: Any) -> Bound:
    signature = Signature((TensorSpec("x", "float32", ("N", 4)),))
    plain = Bound(None, (), signature, ("y",), None, lambda *a: (), lambda *a: {})
    return replace(plain, **more)


def case(made: Any, folder: Path, *edits: Edit, **provenance: Location) -> Case:
    path = folder / "translated.onnx"
    path.write_bytes(made.SerializeToString())
    translated = Translated(path, 18, (), (), provenance)
    job = Job(model=torch.nn.Identity(), workspace=folder, edits=edits)
    return Case(job, (Step("inputs", bound()), Step("translate", translated)))


def test_a_good_file_passes_without_a_finding(tmp_path: Path) -> None:
    step = check(case(linear(), tmp_path))
    assert step.fault is None
    assert not step.findings
    assert (step.value.opset, step.value.ir_version) == (18, 9)


def test_a_missing_kernel_is_found_at_the_users_line_and_cast_around(tmp_path: Path) -> None:
    made = model(
        [node("Cast", ["x"], ["d"], to=11), node("Erf", ["d"], ["e"], name="n1"), node("Cast", ["e"], ["y"], to=1)],
        [value("x", 1, ["N", 4])],
        [value("y", 1, ["N", 4])],
    )
    step = check(case(made, tmp_path, n1=Location(file="model.py", line=7)))
    (finding,) = step.findings
    assert (type(finding), finding.location.file, finding.location.line, finding.location.op) == (
        NoKernel,
        "model.py",
        7,
        "Erf",
    )
    assert finding.instead == ComputedInOtherType("double", "float", ("d",), (0,))
    entry = {"node": "n1", "from": "double", "to": "float", "inputs": ["d"], "places": [0], "how": "cast"}
    edit = Edit("check", "cast-around", {"nodes": [entry]})  # as a recipe says it
    folder = tmp_path / "attempt"
    folder.mkdir()
    again = case(made, tmp_path, edit)
    mended = check(replace(again, job=replace(again.job, workspace=folder)))
    assert not mended.findings
    assert mended.value.path.parent == folder
    assert onnx.load(str(tmp_path / "translated.onnx")) == made, "the translation's own file was touched"


def test_a_file_that_is_not_onnx_is_a_fault(tmp_path: Path) -> None:
    made = linear()
    made.graph.node[0].op_type = "Nonsense"
    assert check(case(made, tmp_path)).fault.type_name == "NotOnnx"


def test_broken_promises_are_told_one_by_one() -> None:
    fixed = linear()
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    assert broken(fixed, bound()) == ["dim 0 of `x` is fixed to 2, promised was `N`"]
    assert broken(linear(), bound(outputs=("logits",))) == ["the outputs are ['y'], promised were ['logits']"]
    other = bound(signature=Signature((TensorSpec("ids", "int64", ("N",)),)))
    assert broken(linear(), other) == ["the input `ids` is missing"]
    assert broken(linear(), bound(signature=Signature((TensorSpec("x", "float16", ("N", 4)),)))) == [
        "the input `x` is float32, promised was float16"
    ]
    assert broken(linear(), bound()) == []


def test_repaired_numbers_are_what_numpy_says(tmp_path: Path) -> None:
    import onnxruntime

    from torchferry.check import passes

    options = {"groups": 2, "epsilon": 1e-5, "activation": 0, "channels_last": 0, "name": "norm"}
    norm = node("GroupNorm", ["x", "g", "b"], ["y"], domain="com.microsoft", **options)
    stored = [("g", np.ones(4, np.float32)), ("b", np.zeros(4, np.float32))]
    shape = ["N", 4, 3, 3]
    made = model([norm], [value("x", 1, shape)], [value("y", 1, shape)], stored, extra=[("com.microsoft", 1)])
    passes.apply(made, Decompose(("norm",)))
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 3)).astype(np.float32)
    got = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    wanted = torch.nn.functional.group_norm(torch.from_numpy(x), 2).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
