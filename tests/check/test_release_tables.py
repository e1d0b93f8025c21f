"""What another release implements, from the table that ships with the package; and, with the real wheels, that it is so."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from broken_files import T, model, node, value, weights

import torchferry
from torchferry import releases
from torchferry.check.support.of_release import lacking
from torchferry.foreign import onnxruntime as ort
from torchferry.records.findings import ComputedInOtherType, NoKernel
from torchferry.releases import kernels

SPEC = importlib.util.spec_from_file_location("wheels", Path(__file__).parent.parent.parent / "benchmarks" / "release_kernels.py")
assert SPEC is not None
assert SPEC.loader is not None
wheels = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(wheels)
OPEN = """
import glob, json, sys, onnxruntime
onnxruntime.set_default_logger_severity(4)
answers = {}
for file in glob.glob(sys.argv[1] + "/*.onnx"):
    try:
        onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        answers[file] = ""
    except Exception as error:
        answers[file] = str(error)
print(json.dumps(answers))
"""


def unary(op: str, kind: int, opset: int = 17, inputs: int = 1, domain: str = "", **more: Any) -> Any:
    gives = T.BOOL if op == "Equal" else kind
    made = node(op, ["x"] * inputs, ["y"], name="here", domain=domain, **more)
    extra = [(domain, 1)] if domain else ()
    return model([made], [value("x", kind, ["N", 4])], [value("y", gives, ["N", 4])], opset=opset, ir=8, extra=extra)


def in_a_loop() -> Any:
    body = onnx.helper.make_graph(
        [node("Erf", ["a"], ["b"], name="inner"), node("Identity", ["c"], ["d"])],
        "body",
        [value("i", T.INT64, []), value("c", T.BOOL, []), value("a", T.DOUBLE, ["N"])],
        [value("d", T.BOOL, []), value("b", T.DOUBLE, ["N"])],
    )
    x, y = value("x", T.DOUBLE, ["N"]), value("y", T.DOUBLE, ["N"])
    return model(
        [node("Loop", ["n", "t", "x"], ["y"], body=body)], [x], [y], [("n", np.array(2)), ("t", np.array(True))], opset=17, ir=8
    )


GRAPHS = {
    "plain": lambda: unary("Relu", T.FLOAT),
    "double error function": lambda: unary("Erf", T.DOUBLE),
    "double gelu": lambda: unary("Gelu", T.DOUBLE, 20),
    "gelu": lambda: unary("Gelu", T.FLOAT, 20),
    "double mish": lambda: unary("Mish", T.DOUBLE, 18),
    "double hard swish": lambda: unary("HardSwish", T.DOUBLE, 18),
    "double selu": lambda: unary("Selu", T.DOUBLE),
    "double leaky": lambda: unary("LeakyRelu", T.DOUBLE),
    "half elu": lambda: unary("Elu", T.FLOAT16),
    "bfloat16": lambda: unary("Abs", T.BFLOAT16),
    "short sum": lambda: unary("Add", T.INT16, inputs=2),
    "double tangent": lambda: unary("Tan", T.DOUBLE),
    "equal truths": lambda: unary("Equal", T.BOOL, inputs=2),
    "contributed": lambda: unary("Gelu", T.FLOAT, domain="com.microsoft"),
    "contributed double": lambda: unary("QuickGelu", T.DOUBLE, domain="com.microsoft"),
    "reduced integers": lambda: unary("ReduceL2", T.INT64, keepdims=1),
    "text": lambda: unary("StringConcat", T.STRING, 20, inputs=2),
    "in a loop": in_a_loop,
}


def test_the_installed_release_is_in_the_table_as_it_is() -> None:
    minor = int(ort.version().split(".")[1])
    if minor not in kernels.limits():
        pytest.skip(f"onnxruntime {ort.version()} is newer than the table")
    ir, opset = ort.limits()
    assert kernels.limits()[minor][:2] == (opset, ir)
    as_sets = lambda table: {k: {json.dumps([a, b, {n: sorted(t) for n, t in sorted(c.items())}]) for a, b, c in v}  # noqa: E731
                             for k, v in table.items()}  # fmt: skip
    assert as_sets(kernels.kernels(minor)) == as_sets(ort.kernels())


def test_what_a_release_lacks_is_told_all_at_once_with_a_way_round_it() -> None:
    made = model(
        [
            node("Erf", ["x"], ["a"], name="first"),
            node("Relu", ["a"], ["b"], name="fine"),
            node("Tan", ["b"], ["y"], name="second"),
        ],
        [value("x", T.DOUBLE, ["N"])],
        [value("y", T.DOUBLE, ["N"])],
        opset=17,
        ir=8,
    )
    found = lacking(made, releases.parse("onnxruntime==1.17"))
    assert [(type(f), f.location.onnx_node) for f in found if f.location] == [(NoKernel, "first"), (NoKernel, "second")]
    assert {type(f.instead) for f in found} == {ComputedInOtherType}


def test_a_file_is_mended_for_a_release_that_is_not_installed(tmp_path: Path) -> None:
    made = model(
        [node("Mish", ["x"], ["y"], name="act")], [value("x", T.DOUBLE, ["N"])], [value("y", T.DOUBLE, ["N"])], opset=18, ir=8
    )
    path, fed = tmp_path / "model.onnx", weights(5).astype(np.float64)
    path.write_bytes(made.SerializeToString())
    result = torchferry.check(path, feeds={"x": fed}, target="onnxruntime==1.16", output=tmp_path / "fixed.onnx")
    assert result.ok
    assert [r.code for r in result.repairs] == ["CHK014"]
    got = torchferry.InferenceSession(result.path).run(None, {"x": fed})[0]
    np.testing.assert_allclose(got, fed * np.tanh(np.log1p(np.exp(fed))), rtol=1e-5)
    assert not lacking(onnx.load(str(result.path)), releases.parse("onnxruntime==1.16"))


def test_packing_keeps_every_kernel_and_the_gaps_between_releases() -> None:
    first: kernels.Kernel = (1, 5, {"T": ("tensor(float)",)})
    second: kernels.Kernel = (6, 9, {"T": ("seq(tensor(float))", "tensor(double)")})
    by_release = {16: {("", "A"): (first,)}, 17: {("", "A"): (second,)}, 18: {("", "A"): (first, second)}}
    table = json.loads(kernels.packed(by_release, {16: (1, 2, 3)}, {15: ["com.x::B"]}))
    assert table["types"] == ["float", "double seq(tensor(float))"]
    assert table["kernels"][""]["A"] == [[16, 16, 1, 5, {"T": 0}], [18, None, 1, 5, {"T": 0}], [17, None, 6, 9, {"T": 1}]]
    assert table["absent"] == {"15": ["com.x::B"]}


@pytest.mark.compat
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("release", wheels.RELEASES[:-1])
def test_the_table_answers_as_the_release_itself_does(release: str, tmp_path: Path) -> None:
    made = {name: make() for name, make in GRAPHS.items()}
    for name, graph in made.items():
        (tmp_path / f"{name}.onnx").write_bytes(graph.SerializeToString())
    environment = {**os.environ, "PYTHONPATH": wheels.python_path(release)}
    asked = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    really = {Path(file).stem: words for file, words in json.loads(asked.stdout.splitlines()[-1]).items()}
    target = releases.parse(f"onnxruntime=={release}")
    ours = {name: bool(lacking(graph, target)) for name, graph in made.items()}
    assert ours == {name: bool(really[name]) for name in made}, really
