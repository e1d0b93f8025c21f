"""Products of 8-bit integers in files: found, told where the processor cuts them off, and mended without another number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import torchferry
from torchferry.check import passes
from torchferry.check.reading.operator_names import operator_names
from torchferry.check.support import products
from torchferry.edits.check import FlipWeights
from torchferry.foreign import onnxruntime as ort
from torchferry.saturation.elsewhere import without_vnni

HEAD = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g'
# what a file may have: its graph up to the weights, and the nodes; w are 8 by 4 weights of int8 unless the graph says otherwise
FILES = {
    "MatMulInteger": """(float[N, 8] x) => (float[N, 4] y) <int8[8, 4] w = {%s}> {
        a, s, z = DynamicQuantizeLinear (x)  [p] sums = MatMulInteger (a, w, z)  y = Cast <to: int = 1> (sums) }""",
    "with-zero-point": """(float[N, 8] x) => (float[N, 4] y) <int8[8, 4] w = {%s}, int8 zw = {3}> {
        a, s, z = DynamicQuantizeLinear (x)  [p] sums = MatMulInteger (a, w, z, zw)  y = Cast <to: int = 1> (sums) }""",
    "QLinearMatMul": """(uint8[N, 8] x) => (uint8[N, 4] y)
        <int8[8, 4] w = {%s}, float one = {1}, uint8 zx = {2}, int8 zw = {0}, float step = {2048}, uint8 zy = {128}> {
        [p] y = QLinearMatMul (x, one, zx, w, one, zw, step, zy) }""",
    "QLinearConv": """(uint8[N, 8, 2, 2] x) => (uint8[N, 4, 2, 2] y)
        <int8[4, 8, 1, 1] w = {%s}, float one = {1}, uint8 zx = {2}, float[4] sw = {1, 2, 1, 2}, int8[4] zw = {0, 0, 0, 0},
         float step = {2048}, uint8 zy = {128}> {
        [p] y = QLinearConv (x, one, zx, w, sw, zw, step, zy) }""",
    "DynamicQuantizeMatMul": """(float[N, 8] x) => (float[N, 4] y) <int8[8, 4] w = {%s}, float[4] sw = {1, 2, 3, 4}> {
        [p] y = com.microsoft.DynamicQuantizeMatMul (x, w, sw) }""",
    "between-DequantizeLinear": """(float[N, 8] x) => (float[N, 4] y)
        <int8[4, 8] w = {%s}, float one = {1}, float[4] sw = {1, 2, 3, 4}, uint8 zx = {2}, float step = {2048},
         uint8 zy = {128}> {
        a = QuantizeLinear (x, one, zx)  ar = DequantizeLinear (a, one, zx)
        wr = DequantizeLinear <axis: int = 0> (w, sw)  wt = Transpose <perm: ints = [1, 0]> (wr)
        [p] r = MatMul (ar, wt)  q = QuantizeLinear (r, step, zy)  y = DequantizeLinear (q, step, zy) }""",
    "ConvInteger": """(int8[N, 8, 2, 2] x) => (int32[N, 4, 2, 2] y)
        <uint8[4, 8, 1, 1] w = {%s}, uint8 zw = {128}, int8 zx = {0}> {
        [p] y = ConvInteger (x, w, zx, zw) }""",
    "DynamicQuantizeLSTM": """(float[N, 1, 8] x) => (float[N, 1, 1, 1] y)
        <int8[1, 8, 4] w = {%s}, int8[1, 1, 4] r = {100, -100, 50, -50}, float[1] one = {0.0001}, int8[1] zero = {0}> {
        [p] y = com.microsoft.DynamicQuantizeLSTM <hidden_size: int = 1> (x, w, r, , , , , , one, zero, one, zero) }""",
}


def made(name: str, largest: int = 127) -> onnx.ModelProto:
    """Return a file with weights up to the largest. Neighbours have opposite signs, so that no pair leaves 16 bits."""
    half = np.random.default_rng(0).integers(-largest, largest + 1, (4, 4))
    half[0, 0] = largest
    weights = np.stack([half, -half], axis=1).reshape(8, 4)  # terms by columns
    weights = weights.T if name in ("QLinearConv", "ConvInteger", "between-DequantizeLinear") else weights
    weights = weights + 128 if name == "ConvInteger" else weights
    return onnx.parser.parse_model(HEAD + FILES[name] % ", ".join(map(str, weights.flatten())))


def fed(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    kind = model.graph.input[0].type.tensor_type
    shape = [d.dim_value or 3 for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return {"x": np.random.default_rng(1).integers(0, 128 if dtype == np.int8 else 250, shape).astype(dtype)}


@pytest.mark.parametrize("name", FILES)
def test_a_product_of_large_weights_is_told_only_where_the_processor_cuts_it_off(name: str, tmp_path: Path) -> None:
    with without_vnni():
        found = products.findings(made(name), tmp_path)
        assert [f.nodes for f in found] in ([("p",)], [("p", "p")]), "an LSTM has two matrices"
        assert all(f.mended for f in found)
        small = 60 if name != "DynamicQuantizeLSTM" else 127
        expected = [] if name != "DynamicQuantizeLSTM" else found
        model = made(name, small)
        if name == "ConvInteger":  # of unsigned weights those below 128 are small
            _set(model, "w", np.arange(32, dtype=np.uint8).reshape(4, 8, 1, 1))
        assert products.findings(model, tmp_path) == expected
    assert len(products.findings(made(name), tmp_path)) in (0, 1), "this processor, whatever it is, answers too"


@pytest.mark.parametrize("name", FILES)
def test_weights_of_the_other_sign_give_the_same_numbers(name: str) -> None:
    before, after = made(name), made(name)
    passes.apply(after, FlipWeights(("p",)))
    with without_vnni():
        assert not products.cut_off(after, Path())
    for level in ort.LEVELS:
        one, two = (ort.session(m.SerializeToString(), level=level).run(None, fed(before))[0] for m in (before, after))
        np.testing.assert_allclose(two, one, rtol=1e-6)
        assert np.ptp(one) > 0, "the outputs say something"


def _set(model: onnx.ModelProto, name: str, array: np.ndarray) -> None:
    tensor = next(t for t in model.graph.initializer if t.name == name)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))


def test_the_runtime_folds_what_was_added_so_that_its_own_fusions_still_match(tmp_path: Path) -> None:
    model = made("MatMulInteger")
    passes.apply(model, FlipWeights(("p",)))
    ort.session(model.SerializeToString(), optimised_to=tmp_path / "optimised.onnx")
    left = onnx.load(tmp_path / "optimised.onnx").graph
    assert [n.op_type for n in left.node].count("Cast") == 1, "only the one that was there"
    assert {onnx.helper.tensor_dtype_to_string(t.data_type) for t in left.initializer} == {"TensorProto.UINT8"}


def test_weights_in_a_file_of_their_own_are_looked_at_there(tmp_path: Path) -> None:
    for name, largest in (("large", 127), ("small", 60)):
        model = made("MatMulInteger", largest)
        _set(model, "w", onnx.numpy_helper.to_array(model.graph.initializer[0]))
        path = tmp_path / f"{name}.onnx"
        onnx.save_model(model, str(path), save_as_external_data=True, location=f"{name}.data", size_threshold=0)
        with without_vnni():
            found = products.findings(onnx.load(path, load_external_data=False), tmp_path)
        assert len(found) == (largest == 127)


def test_weights_that_are_computed_may_be_anything(tmp_path: Path) -> None:
    text = """(uint8[N, 8] x, int8[8, 4] w) => (int32[N, 4] y) { [p] y = MatMulInteger (x, w) }"""
    with without_vnni():
        assert len(products.findings(onnx.parser.parse_model(HEAD + text), tmp_path)) == 1


@pytest.mark.parametrize("name", ["MatMulInteger", "between-DequantizeLinear"])
def test_a_checked_file_is_mended_and_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    path, mended = tmp_path / "model.onnx", tmp_path / "mended.onnx"
    path.write_bytes(made(name).SerializeToString())
    feed = fed(made(name))
    with without_vnni():
        result = torchferry.check(path, feeds=feed, output=mended)
        assert result.ok, [d.message for d in result.diagnoses]
        assert [r.code for r in result.repairs] == ["CHK050"]
        assert torchferry.check(mended, feeds=feed, repair="off").ok
        assert not torchferry.check(path, feeds=feed, repair="off").ok
    before, after = (ort.session(p).run(None, feed)[0] for p in (path, mended))
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_operators_are_read_past_weights_and_inside_branches(tmp_path: Path) -> None:
    text = """(bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, else_branch = e () => (float[2] b) { b = Neg (x) }> }"""
    model = onnx.parser.parse_model(HEAD + text)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert operator_names(tmp_path / "m.onnx") == operator_names(model.SerializeToString()) == {"If", "Relu", "Neg"}


@pytest.mark.parametrize("data", [b"", b"no model", b"\x3a\xff\xff\xff\xff\x7f", b"\x00" * 40])
def test_what_is_no_model_has_no_operators(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    assert operator_names(tmp_path / "m.onnx") == operator_names(data) == frozenset()
    assert operator_names(tmp_path / "missing.onnx") == frozenset()
