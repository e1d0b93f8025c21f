"""A result stands in for torch.onnx's ONNXProgram, and never for a file that is not the verified one."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

import torchferry
from torchferry import delivery
from torchferry.certificate import read
from torchferry.delivery import NotTheSame, Proof, relaid
from torchferry.errors import UsageError
from torchferry.records import Layout

QUICK = torchferry.Budget(trials=6, mutants=0)
X = torch.randn(2, 64)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 32)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        y = torch.tanh(self.fc(x))
        return {"y": y if scale is None else y * scale, "half": y.to(torch.bfloat16)}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model().eval()


@pytest.fixture(scope="module")
def exported(model: Model) -> torchferry.Result:
    return torchferry.export(model, (X,), budget=QUICK)


@pytest.fixture
def result(exported: torchferry.Result, tmp_path: Path) -> torchferry.Result:
    return exported.save(tmp_path / "model.onnx")


def test_a_call_gives_what_the_file_gives_as_tensors_of_the_models_dtypes(result: torchferry.Result, model: Model) -> None:
    y, half = result(torch.ones(5, 64))
    torch.testing.assert_close(y, model(torch.ones(5, 64))["y"], rtol=1e-4, atol=1e-5)
    assert half.dtype == torch.bfloat16
    opened: list[str] = []
    result.initialize_inference_session(lambda path: opened.append(path) or torchferry.InferenceSession(path))
    assert result(X)[0].shape == (2, 32)
    assert opened == [str(result.path)]
    result.release()


def test_values_from_within_the_graph_are_computed_and_unknown_ones_refused(result: torchferry.Result, model: Model) -> None:
    tanh = next(node for node in result.model_proto.graph.node if node.op_type == "Tanh")
    (inner,) = result.compute_values([tanh.input[0]], (X,))
    torch.testing.assert_close(inner, model.fc(X), rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="no value `nothing`"):
        result.compute_values(["nothing"], (X,))


def test_the_graph_is_shown_and_a_changed_one_is_not_passed_off_as_verified(result: torchferry.Result, tmp_path: Path) -> None:
    assert isinstance(result.model_proto, onnx.ModelProto)
    assert result.exported_program is result.program is not None
    weight = result.model.graph.initializers["fc.bias"]
    result.save(tmp_path / "before.onnx")  # a look changes nothing
    weight.const_value = ir.tensor(np.zeros(32, np.float32))
    for use in (partial(result.save, tmp_path / "after.onnx"), partial(result, X), lambda: result.model_proto):
        with pytest.raises(UsageError, match="was changed after it was verified"):
            use()
    assert not (tmp_path / "after.onnx").exists()


def test_what_would_make_another_model_is_refused_with_the_way_to_it(result: torchferry.Result) -> None:
    with pytest.raises(UsageError, match="load_state_dict"):
        result.apply_weights({})
    with pytest.raises(UsageError, match="dynamic_shapes"):
        result.rename_axes({})
    result.optimize()
    plain = torchferry.export(nn.ReLU(), (X,), optimize=False, budget=QUICK)
    with pytest.raises(UsageError, match="optimize=False"):
        plain.optimize()


def test_a_result_is_shown_in_a_few_lines_at_a_prompt(result: torchferry.Result) -> None:
    assert len(repr(result)) < 400
    assert "verified" in repr(result)
    assert "batch_size 1.." in repr(result)


def test_a_file_that_something_else_was_written_to_is_not_saved_as_the_verified_one(
    result: torchferry.Result, tmp_path: Path
) -> None:
    torchferry.export(nn.ReLU(), (X,), tmp_path / "model.onnx", budget=QUICK)
    with pytest.raises(UsageError, match="no longer the file that was verified"):
        result.save(tmp_path / "copy.onnx")
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(UsageError, match="no longer there"):
        result(X)


def test_weights_that_were_changed_beside_the_file_are_noticed(exported: torchferry.Result, tmp_path: Path) -> None:
    result = exported.save(tmp_path / "model.onnx", external_data=True)
    (data,) = tmp_path.glob("model.onnx.*.data")
    held = bytearray(data.read_bytes())
    held[5] ^= 1
    data.write_bytes(bytes(held))
    for more in ({}, {"external_data": False}, {"keep_initializers_as_inputs": True}):
        with pytest.raises(torchferry.TorchferryError):
            result.save(tmp_path / "copy.onnx", **more)  # type: ignore[arg-type]
    assert not (tmp_path / "copy.onnx").exists()


def test_every_way_to_save_keeps_what_the_file_computes(result: torchferry.Result, model: Model, tmp_path: Path) -> None:
    want = model(X)["y"]
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    for name, options in {
        "plain": {}, "beside": {"external_data": True}, "inside": {"external_data": False},
        "open": {"keep_initializers_as_inputs": True}, "empty": {"include_initializers": False},
    }.items():  # fmt: skip
        saved = result.save(tmp_path / f"{name}.onnx", **options)  # type: ignore[arg-type]
        assert saved.ok
        torch.testing.assert_close(saved(X)[0], want, rtol=1e-4, atol=1e-5)
        session = torchferry.InferenceSession(tmp_path / f"{name}.onnx")
        fed = {"x": X.numpy(), **(weights if name == "empty" else {})}
        np.testing.assert_allclose(session.run(["y"], fed)[0], want.detach().numpy(), atol=1e-5)
        certified = read(tmp_path / f"{name}.onnx")
        assert bool(certified.data) == (name in ("plain", "beside", "inside"))
        assert not certified.data or not certified.objections
    assert len(list(tmp_path.glob("beside.onnx.*.data"))) == 1
    stream = io.BytesIO()
    result.save(stream)
    assert onnx.load_from_string(stream.getvalue()).graph == result.model_proto.graph
    with pytest.raises(UsageError, match="beside a stream"):
        result.save(stream, external_data=True)


def test_a_file_that_is_not_the_verified_one_with_its_weights_put_back_is_refused(
    result: torchferry.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each writer below does one thing wrong on its way."""
    assert result.path is not None
    proof = Proof(
        [partial(result.inputs, trial) for trial in result.trials[:2]], result.history.best.value("verify").tolerance, {}
    )
    right = delivery._write

    def another_number(made: onnx.ModelProto, path: Path, beside: bool | None) -> None:
        held = next((t for t in made.graph.initializer if t.name == "fc.bias"), None)
        if held is not None:
            held.raw_data = np.zeros(32, np.float32).tobytes()
        right(made, path, beside)

    def another_node(made: onnx.ModelProto, path: Path, beside: bool | None) -> None:
        next(n for n in made.graph.node if n.op_type == "Tanh").op_type = "Sigmoid"
        right(made, path, beside)

    for wrong in (another_number, another_node):
        monkeypatch.setattr(delivery, "_write", wrong)
        for layout in (Layout(as_inputs=True), Layout(beside=False)):
            with pytest.raises(NotTheSame):
                relaid(result.path, tmp_path / "made.onnx", layout, frozenset({"fc.weight", "fc.bias"}), proof)


def test_a_file_that_runs_otherwise_once_its_weights_are_inputs_is_refused(
    result: torchferry.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result.path is not None
    real = delivery.ort.run

    def leaning(opened: object, feeds: dict[str, object], names: list[str]) -> list[object]:
        got = real(opened, feeds, names)
        return [got[0] + 1, *got[1:]] if "fc.bias" in feeds else got

    monkeypatch.setattr(delivery.ort, "run", leaning)
    calls = [partial(result.inputs, trial) for trial in result.trials[:2]]
    proof = Proof(calls, result.history.best.value("verify").tolerance, {})
    with pytest.raises(NotTheSame, match="something else"):
        relaid(result.path, tmp_path / "made.onnx", Layout(left_out=True), frozenset({"fc.bias"}), proof)


def test_a_result_without_a_file_has_nothing_to_hand_out(result: torchferry.Result, tmp_path: Path) -> None:
    without = replace(result, path=None)
    for use in (
        lambda: without(X),
        lambda: without.model,
        lambda: without.model_proto,
        lambda: without.save(tmp_path / "m.onnx"),
    ):
        with pytest.raises(UsageError, match="no verified file"):
            use()
