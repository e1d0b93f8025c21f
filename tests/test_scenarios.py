"""The scenarios that torchferry was built for: shapes of code that people write, and what stock torch.onnx makes of them.

"Repaired" means converted, verified, and the repair announced with its code.
"""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import torchferry

HERE = Path(__file__).name


def dialogpt() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=101, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config).eval()


def run(result: torchferry.Result, *args: torch.Tensor, **kwargs: torch.Tensor) -> list[np.ndarray]:
    return torchferry.InferenceSession(str(result.path)).run(None, result.feeds(args, kwargs))


def line_of(function: object, text: str) -> int:
    """Return the line in this file on which `text` stands inside a function or class."""
    lines, start = inspect.getsourcelines(function)  # type: ignore[arg-type]
    return start + next(i for i, line in enumerate(lines) if text in line)


def declared(result: torchferry.Result) -> dict[str, list[object]]:
    session = torchferry.InferenceSession(str(result.path))
    return {i.name: i.shape for i in session.get_inputs()}


# --- 1 to 3: the model that people fail with first ------------------------------------------------


def test_a_language_model_with_a_cache_in_its_outputs_is_converted(tmp_path: Path) -> None:
    model, ids = dialogpt(), torch.randint(0, 101, (2, 7))
    axes = {"input_ids": {0: "batch_size", 1: "seq_len"}}
    result = torchferry.export(
        model, (ids,), tmp_path / "m.onnx", input_names=["input_ids"], output_names=["output"], dynamic_axes=axes
    )
    assert result.ok
    names = [o.name for o in torchferry.InferenceSession(str(result.path)).get_outputs()]
    assert names[0] == "output"
    assert len(names) == 1 + 2 * 2  # two layers, a key and a value each, with names of their own
    assert declared(result)["input_ids"] == ["batch_size", "seq_len"]
    for batch, length in ((1, 1), (3, 12), (2, 32)):
        other = torch.randint(0, 101, (batch, length))
        with torch.no_grad():
            want = model(other).logits
        np.testing.assert_allclose(run(result, other)[0], want, rtol=1e-3, atol=1e-4)


def test_a_mask_in_the_place_of_the_cache_is_bound_by_the_names_given(tmp_path: Path) -> None:
    model, ids = dialogpt(), torch.randint(0, 101, (2, 7))
    mask = torch.ones_like(ids)
    result = torchferry.export(model, (ids, mask), tmp_path / "m.onnx", input_names=["input_ids", "attention_mask"])
    assert result.ok
    assert list(declared(result)) == ["input_ids", "attention_mask"]
    assert any("attention_mask" in d.message for d in result.diagnoses if d.fixed), "the rebinding must be announced"


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_batches_agree_at_valid_positions(tmp_path: Path, side: str) -> None:
    model = dialogpt()
    ids = torch.randint(0, 101, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    result = torchferry.export(model, (), tmp_path / "m.onnx", kwargs={"input_ids": ids, "attention_mask": mask})
    for batch, length in ((1, 4), (3, 9), (4, 20)):
        ids = torch.randint(0, 101, (batch, length))
        mask = torch.ones_like(ids)
        mask[-1, : length // 2] = 0
        mask = mask if side == "left" else mask.flip(1)
        with torch.no_grad():
            want = model(input_ids=ids, attention_mask=mask).logits
        got = run(result, input_ids=ids, attention_mask=mask)[0]
        valid = mask.bool().numpy()
        np.testing.assert_allclose(got[valid], want.numpy()[valid], rtol=1e-3, atol=1e-4)


# --- 4 and 5: plain networks ----------------------------------------------------------------------


def convnet() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 4 * 4, 5)]
    return nn.Sequential(*layers).eval()


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


@pytest.mark.parametrize(
    ("model", "example"),
    [(nn.Linear(10, 5), torch.randn(2, 10)), (Named(), torch.randn(2, 10)), (convnet(), torch.randn(2, 3, 8, 8))],
    ids=["linear", "named-x", "convnet"],
)
def test_dynamic_axes_by_other_names_are_matched_by_position(tmp_path: Path, model: nn.Module, example: torch.Tensor) -> None:
    axes = {"input": {0: "batch"}, "output": {0: "batch"}}
    result = torchferry.export(model, example, tmp_path / "m.onnx", dynamic_axes=axes)
    session = torchferry.InferenceSession(str(result.path))
    assert [i.name for i in session.get_inputs()] == ["input"]
    assert [o.name for o in session.get_outputs()] == ["output"]
    assert session.get_inputs()[0].shape[0] == "batch"
    for batch in (1, 5, 10):
        x = torch.randn(batch, *example.shape[1:])
        with torch.no_grad():
            want = model(x)
        np.testing.assert_allclose(session.run(None, {"input": x.numpy()})[0], want, rtol=1e-4, atol=1e-5)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.norm(self.fc(x)))


@pytest.mark.parametrize(("model", "shape"), [(convnet(), (2, 3, 8, 8)), (Normed().eval(), (2, 8))], ids=["convnet", "normed"])
def test_the_opset_asked_for_is_the_opset_that_comes_out(tmp_path: Path, model: nn.Module, shape: tuple[int, ...]) -> None:
    import onnx

    result = torchferry.export(model, torch.randn(shape), tmp_path / "m.onnx", opset_version=13)
    assert result.ok
    stamped = {o.domain: o.version for o in onnx.load(str(result.path)).opset_import}
    assert stamped[""] == 13
    x = torch.randn(5, *shape[1:])
    with torch.no_grad():
        np.testing.assert_allclose(run(result, x)[0], model(x), rtol=1e-4, atol=1e-5)


class Sampler(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return F.grid_sample(y, grid, align_corners=False)


def test_an_opset_that_cannot_express_the_model_is_refused_with_the_line(tmp_path: Path) -> None:
    args = (torch.randn(1, 2, 4, 4), torch.rand(1, 3, 3, 2))
    result = torchferry.export(Sampler(), args, tmp_path / "m.onnx", opset_version=13, check=False)
    assert not result.ok
    assert not (tmp_path / "m.onnx").exists()
    (found,) = [d for d in result.diagnoses if d.severity == "error"]
    assert "GridSample" in found.message
    assert "16" in found.message + found.help
    assert (Path(found.location.file or "").name, found.location.line) == (HERE, line_of(Sampler, "F.grid_sample"))


# --- 6 and 7: what ONNX lacks ---------------------------------------------------------------------

LIBRARY = torch.library.Library("torchferry_scenarios", "FRAGMENT")
LIBRARY.define("opaque(Tensor x) -> Tensor")
LIBRARY.define("murky(Tensor x) -> Tensor")
for _op in ("opaque", "murky"):
    LIBRARY.impl(_op, lambda x: torch.from_numpy(np.sort(x.numpy(), axis=-1)), "CPU")
    torch.library.register_fake(f"torchferry_scenarios::{_op}", torch.empty_like)


class Opaque(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.torchferry_scenarios.opaque(x)
        return torch.ops.torchferry_scenarios.murky(y) + 1


def test_every_operator_that_onnx_lacks_is_named_at_once_with_its_line_and_a_skeleton(tmp_path: Path) -> None:
    result = torchferry.export(Opaque(), (torch.randn(2, 3),), tmp_path / "m.onnx", check=False)
    errors = [d for d in result.diagnoses if d.severity == "error"]
    places = {(Path(d.location.file or "").name, d.location.line) for d in errors}
    assert places == {(HERE, line_of(Opaque, ".opaque(x)")), (HERE, line_of(Opaque, ".murky(y)"))}
    told = " ".join(d.message + d.help + " ".join(d.evidence) for d in errors)
    assert "opaque" in told
    assert "murky" in told
    assert "torchferry.register_op" in told


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return grad


class WithFunction(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Swish.apply(x) + 1


def test_an_autograd_function_is_inlined(tmp_path: Path) -> None:
    result = torchferry.export(WithFunction(), (torch.randn(2, 3),), tmp_path / "m.onnx")
    x = torch.randn(5, 3)
    np.testing.assert_allclose(run(result, x)[0], x * torch.sigmoid(x) + 1, rtol=1e-5, atol=1e-6)


# --- 8 and 9: branches ----------------------------------------------------------------------------


class OnValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


def test_a_branch_on_a_value_is_told_in_a_screenful_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(torchferry.ExportError) as caught:
        torchferry.export(OnValue(), (torch.ones(2, 3),), tmp_path / "m.onnx", repair="off")
    assert len(str(caught.value).splitlines()) < 40
    first = caught.value.result.diagnoses[0]
    assert (Path(first.location.file).name, first.location.line) == (HERE, line_of(OnValue, "if x.sum()"))


def test_a_branch_on_a_value_is_repaired_and_right_on_both_sides(tmp_path: Path) -> None:
    result = torchferry.export(OnValue(), (torch.ones(2, 3),), tmp_path / "m.onnx")
    assert result.repairs
    np.testing.assert_allclose(run(result, torch.ones(2, 3))[0], 2 * np.ones((2, 3)))
    np.testing.assert_allclose(run(result, -torch.ones(2, 3))[0], -2 * np.ones((2, 3)))


class WithCond(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


def test_a_model_that_uses_torch_cond_itself_needs_no_repair(tmp_path: Path) -> None:
    result = torchferry.export(WithCond(), (torch.ones(2, 3),), tmp_path / "m.onnx")
    assert not result.repairs
    np.testing.assert_allclose(run(result, -torch.ones(2, 3))[0], -2 * np.ones((2, 3)))


class OnLength(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 10:
            return x.mean(1)
        return x.amax(1)


@pytest.mark.parametrize("told", [False, True], ids=["discovered", "asked"])
def test_a_branch_on_a_length_is_never_given_a_green_tick_it_does_not_deserve(tmp_path: Path, told: bool) -> None:
    shapes = {"x": {0: "batch", 1: torch.export.Dim("length", min=1, max=64)}} if told else None
    example = (torch.randn(2, 5, 4),)
    result = torchferry.export(OnLength(), example, tmp_path / "m.onnx", dynamic_shapes=shapes, check=False)
    if not result.ok:
        first = result.diagnoses[0]
        assert (Path(first.location.file or "").name, first.location.line) == (HERE, line_of(OnLength, "if x.shape[1]"))
        return
    for length in (1, 5, 10, 11, 20, 64):
        x = torch.randn(2, length, 4)
        try:
            feeds = result.feeds((x,), {})
        except torchferry.FeedError:  # declared narrower, and said so
            assert not told
            continue
        got = torchferry.InferenceSession(str(result.path)).run(None, feeds)[0]
        np.testing.assert_allclose(got, OnLength()(x), rtol=1e-5, atol=1e-6)


# --- 10: training mode ----------------------------------------------------------------------------


def test_a_model_in_training_mode_is_announced(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    result = torchferry.export(model, (torch.randn(8, 4),), tmp_path / "m.onnx", check=False)
    assert model.training
    told = " ".join(d.message + d.help for d in result.diagnoses)
    assert "eval()" in told


class FunctionalDropout(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5)


def test_functional_dropout_left_on_is_a_diagnosis_at_its_line(tmp_path: Path) -> None:
    result = torchferry.export(FunctionalDropout().eval(), (torch.randn(4, 64),), tmp_path / "m.onnx", check=False)
    assert not result.ok
    places = {(Path(d.location.file or "").name, d.location.line) for d in result.diagnoses}
    assert (HERE, line_of(FunctionalDropout, "F.dropout")) in places


# --- 11: wrong kinds of input ---------------------------------------------------------------------


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids).mean(1)


def test_an_example_of_the_wrong_dtype_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(torchferry.ExportError) as caught:
        torchferry.export(Words(), (torch.zeros(2, 3),), tmp_path / "m.onnx")
    assert "ids" in str(caught.value)
    assert "float" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 30


def test_numpy_arrays_are_taken_as_tensors_with_a_note(tmp_path: Path) -> None:
    result = torchferry.export(Words(), (np.zeros((2, 3), np.int64),), tmp_path / "m.onnx")
    assert result.ok
    assert any("numpy" in d.message for d in result.diagnoses)


def test_no_example_at_all_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(torchferry.UsageError, match="ids"):
        torchferry.export(Words(), (), tmp_path / "m.onnx")


def test_a_typo_in_dynamic_axes_is_met_with_the_name_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(torchferry.UsageError, match="did you mean `input_ids`"):
        torchferry.export(
            dialogpt(), (), tmp_path / "m.onnx", kwargs={"input_ids": torch.ones(2, 5, dtype=torch.long)},
            dynamic_axes={"inptu_ids": {0: "batch"}},
        )  # fmt: skip


def test_a_directory_that_does_not_exist_is_a_usage_error_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(torchferry.UsageError, match="does not exist"):
        torchferry.export(Words(), (torch.zeros(2, 3, dtype=torch.long),), tmp_path / "no" / "such" / "m.onnx")


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(math.prod(x.shape) + 1)


def test_a_model_that_raises_on_its_own_example_is_told_with_its_line(tmp_path: Path) -> None:
    result = torchferry.export(Broken(), (torch.zeros(2, 3),), tmp_path / "m.onnx", check=False)
    first = result.diagnoses[0]
    assert (Path(first.location.file or "").name, first.location.line) == (HERE, line_of(Broken, "x.reshape"))
    assert not result.repairs
