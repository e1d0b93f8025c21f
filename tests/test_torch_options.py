"""What torch.onnx.export takes beyond our own arguments is carried out, and verified so; or it is said, or refused, in words."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnxscript import opset18 as op
from torch import nn

import torchferry
from torchferry import torch_options
from torchferry.errors import ExportError, UsageError
from torchferry.foreign import onnxruntime as ort

QUICK = torchferry.Budget(trials=6, mutants=0)
X = torch.randn(2, 4)
OURS = frozenset({"model", "args", "f"})


class Doubtful(nn.Module):
    """Acts otherwise in training."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x))


class Smooth(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(x)


def export(model: Any, *args: Any, **options: Any) -> torchferry.Result:
    return torchferry.export(model, *(args or ((X,),)), budget=QUICK, **options)


def silu(self: Any) -> Any:
    return op.Div(self, op.Add(op.Exp(op.Neg(self)), op.Constant(value_float=1.0)))


def nearly_silu(self: Any) -> Any:
    return op.Div(self, op.Add(op.Exp(op.Neg(self)), op.Constant(value_float=1.0001)))


def test_a_translation_of_ones_own_is_used_and_told() -> None:
    result = export(Smooth(), custom_translation_table={torch.ops.aten.silu.default: [silu]})
    assert "Sigmoid" not in {node.op_type for node in result.model_proto.graph.node}
    assert "`aten::silu` is translated as custom_translation_table says" in result.render().replace("\n", " ").replace("  ", " ")


def test_a_translation_of_ones_own_that_is_wrong_is_refused_by_the_comparison() -> None:
    table = {torch.ops.aten.silu.default: nearly_silu}
    with pytest.raises(ExportError) as raised:
        export(Smooth(), custom_translation_table=table, repair="off")
    assert raised.value.result.history.best.failed


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([silu], "is a dict"),
        ({"aten::silu": silu}, "write `torch.ops.aten"),
        ({torch.ops.aten.silu: silu}, "has overloads"),
        ({torch.ops.aten.silu.default: [silu, nearly_silu]}, "2 functions"),
        ({torch.ops.aten.silu.default: 3}, "no function"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused_in_words(table: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        export(Smooth(), custom_translation_table=table)


def test_weights_as_inputs_are_in_the_verified_file_itself(tmp_path: Path) -> None:
    result = export(nn.Linear(4, 3), (X,), tmp_path / "open.onnx", keep_initializers_as_inputs=True)
    made = onnx.load(tmp_path / "open.onnx")
    assert [i.name for i in made.graph.input] == ["input", "weight", "bias"]
    assert {t.name for t in made.graph.initializer} >= {"weight", "bias"}
    from torchferry.certificate import read

    assert read(tmp_path / "open.onnx").objections == ()
    assert [t.weights for t in result.trials if t.weights], "other weights were tried too"


def test_a_file_without_weights_says_so_and_carries_no_certificate(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    result = export(model, (X,), tmp_path / "empty.onnx", export_params=False)
    made = onnx.load(tmp_path / "empty.onnx")
    assert [i.name for i in made.graph.input] == ["input", "weight", "bias"]
    assert not made.graph.initializer
    from torchferry.certificate import read

    assert read(tmp_path / "empty.onnx").data == {}
    assert "once it is fed the weights" in str(result)
    assert "--certificate" not in str(result)
    assert "once it is fed the weights" in repr(result)
    fed = {"input": X.numpy(), **{n: v.numpy() for n, v in model.state_dict().items()}}
    np.testing.assert_allclose(ort.session(tmp_path / "empty.onnx").run(None, fed)[0], model(X).detach().numpy(), atol=1e-6)
    torch.testing.assert_close(result(X)[0], model(X))  # a call has the weights that were verified
    assert result.save(tmp_path / "whole.onnx").ok
    assert read(tmp_path / "whole.onnx").data


def test_weights_go_where_external_data_says(tmp_path: Path) -> None:
    model = nn.Linear(64, 32)
    export(model, (torch.randn(2, 64),), tmp_path / "beside.onnx", external_data=True)
    export(model, (torch.randn(2, 64),), tmp_path / "inside.onnx", external_data=False)
    assert len(list(tmp_path.glob("beside.onnx.*.data"))) == 1
    assert not list(tmp_path.glob("inside.onnx.*"))


def test_the_bytes_of_a_verified_file_are_written_to_what_takes_bytes() -> None:
    stream = io.BytesIO()
    result = export(nn.Linear(4, 3), (X,), stream)
    assert result.path is not None
    assert stream.getvalue() == result.path.read_bytes()


def test_nothing_is_written_to_a_stream_when_nothing_was_verified() -> None:
    stream = io.BytesIO()
    with pytest.raises(ExportError):
        export(Smooth(), (X,), stream, custom_translation_table={torch.ops.aten.silu.default: nearly_silu}, repair="off")
    assert stream.getvalue() == b""


def test_what_is_neither_a_path_nor_takes_bytes_is_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match="named by a path"):
        torchferry.export(nn.Linear(4, 3), (X,), 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"dynamo": False}, {"training": torch.onnx.TrainingMode.EVAL}])
def test_the_mode_that_is_asked_for_holds_while_exporting_and_not_after(options: dict[str, Any]) -> None:
    model = Doubtful()
    result = export(model, **options)
    assert result.ok
    assert [part.training for part in model.modules()] == [True] * 3
    torch.testing.assert_close(result(X)[0], model.eval()(X))


def test_a_script_gets_its_mode_back_too() -> None:
    model = torch.jit.script(Doubtful())
    with torch_options.in_mode(model, False):
        assert not model.training
        assert not model.drop.training
    assert model.training
    assert model.drop.training


def test_training_mode_that_is_to_be_kept_is_not_taken_for_eval() -> None:
    with pytest.raises(ExportError) as raised:
        export(Doubtful(), dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, repair="off")
    assert "NUM006" in {d.code for d in raised.value.result.diagnoses}


def test_a_report_and_the_program_are_put_where_artifacts_go(tmp_path: Path) -> None:
    export(nn.Linear(4, 3), report=True, dump_exported_program=True, artifacts_dir=tmp_path / "new")
    (page,), (program,) = (tmp_path / "new").glob("*_success.md"), (tmp_path / "new").glob("*.pt2")
    assert "verified" in page.read_text()
    assert torch.export.load(program).module()(X)[0].shape == (2, 3)


def test_a_report_is_written_of_a_failure_too(tmp_path: Path) -> None:
    with pytest.raises(ExportError):
        export(Doubtful(), report=True, artifacts_dir=tmp_path, repair="off")
    assert list(tmp_path.glob("*_failed.md"))


@pytest.mark.parametrize(
    "option",
    [
        {"do_constant_folding": False}, {"export_modules_as_functions": True}, {"autograd_inlining": False}, {"profile": True},
        {"operator_export_type": torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH},
    ],
)  # fmt: skip
def test_what_makes_no_difference_is_said(option: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="changes nothing"):
        torch_options.read(option, OURS)


def test_the_usual_values_of_all_options_are_taken_in_silence() -> None:
    import inspect

    usual = {n: p.default for n, p in inspect.signature(torch.onnx.export).parameters.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = torch_options.read({n: v for n, v in usual.items() if n in torch_options.TAKEN_FROM_TORCH}, OURS)
    assert (read.edits, read.translations, read.custom_opsets) == ((), {}, {})
    assert read.layout == torch_options.Layout(beside=True)


@pytest.mark.parametrize("versions", [{"": 17}, {"mine": 0}, {"mine": "2"}, [1]])
def test_versions_of_domains_that_make_no_sense_are_refused(versions: Any) -> None:
    with pytest.raises(UsageError):
        torch_options.read({"custom_opsets": versions}, OURS)


def test_an_unknown_option_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(UsageError, match="keep_initializers_as_inputs"):
        torchferry.export(nn.Linear(4, 3), (X,), keep_initializer_as_inputs=True)


def test_weights_elsewhere_are_refused_for_a_directory_of_several_graphs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="export_params"):
        torchferry.export(nn.Linear(4, 3), f=tmp_path, task="text-generation", export_params=False)


def test_an_output_may_be_named_by_dynamic_axes_alone() -> None:
    axes = {"input": {0: "batch"}, "output": {0: "batch"}}
    result = export(Smooth(), input_names=["input"], dynamic_axes=axes)
    assert [o.name for o in result.model_proto.graph.output] == ["output"]


def test_a_name_in_dynamic_axes_that_is_nothing_s_is_refused() -> None:
    with pytest.raises(UsageError, match="neither an input nor an output"):
        export(Smooth(), input_names=["input"], output_names=["output"], dynamic_axes={"inptu": {0: "batch"}})


@pytest.mark.parametrize("name", ["example_outputs", "enable_onnx_checker", "use_external_data_format"])
def test_what_torch_onnx_took_once_is_answered_with_what_to_do(name: str) -> None:
    with pytest.raises(UsageError, match=r"and torch\.onnx no longer does"):
        torchferry.export(torch.nn.ReLU(), (torch.ones(2),), **{name: True})


def test_one_tensor_is_not_counted_in_the_plural() -> None:
    with pytest.raises(UsageError, match="takes one tensor: input"):
        torchferry.export(torch.nn.ReLU(), (torch.ones(2),), input_names=["a", "b"])
