"""Relations that hold beyond single answers: padding, names, sizes that belong together, levels of optimisation, repetition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from crossing import crossed, errors, marked, stock, verdict
from torch import nn

import torchferry
from torchferry.verify.trials.coupled import together


class Pooled(nn.Module):
    """A mean over real tokens, to which padding may contribute a little."""

    def __init__(self, leak: float):
        super().__init__()
        self.leak = leak

    def forward(self, x, attention_mask):
        kept = x * (attention_mask[..., None] + self.leak * (1 - attention_mask[..., None]))
        return kept.sum(1) / attention_mask.sum(1, keepdim=True).clamp(min=1)


def test_what_lies_under_the_padding_must_not_leak(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = verdict(Pooled(0.0), example, stock(Pooled(5e-6), example, tmp_path / "m.onnx"))
    assert not result.ok
    assert "other-padding" in {t.values for t in result.trials if t.outcome == "differ"}


def test_padding_that_matters_in_eager_may_matter_in_the_file(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = crossed(Pooled(0.5), example, tmp_path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert "other-padding" in {t.values for t in result.trials}


class Named(nn.Module):
    def forward(self, query, key):
        return {"total": query * 2 - key, "ratio": query / (key.abs() + 1)}


def exported(path: Path, inputs: list[str], outputs: list[str]) -> Path:
    torch.onnx.export(Named(), EXAMPLE, str(path), dynamo=False, input_names=inputs, output_names=outputs)
    return path


EXAMPLE = (torch.randn(2, 3), torch.randn(2, 3))


def test_outputs_are_compared_by_name(tmp_path: Path) -> None:
    right = exported(tmp_path / "a.onnx", ["query", "key"], ["total", "ratio"])
    assert verdict(Named(), EXAMPLE, right).ok
    swapped = verdict(Named(), EXAMPLE, exported(tmp_path / "b.onnx", ["query", "key"], ["ratio", "total"]))
    assert errors(swapped) == ["NUM020"]
    assert "`ratio` holds what the model calls `total`" in swapped.diagnoses[0].message


def test_outputs_in_another_order_under_their_own_names_are_right(tmp_path: Path) -> None:
    path = exported(tmp_path / "a.onnx", ["query", "key"], ["total", "ratio"])
    file = onnx.load(str(path))
    first = onnx.ValueInfoProto()
    first.CopyFrom(file.graph.output[0])
    del file.graph.output[0]
    file.graph.output.append(first)
    onnx.save(file, str(path))
    assert verdict(Named(), EXAMPLE, path).ok


def test_inputs_named_the_wrong_way_round_are_told(tmp_path: Path) -> None:
    result = verdict(Named(), EXAMPLE, exported(tmp_path / "a.onnx", ["key", "query"], ["total", "ratio"]))
    assert errors(result) == ["NUM020"]
    assert "`key` is taken for the model's `query`" in result.diagnoses[0].message


class MaskOfAnyBatch(nn.Module):
    """Eager puts up with a mask of one row, and with one of too many; nobody means that."""

    def forward(self, x, attention_mask):
        rows = torch.arange(x.shape[0]) if attention_mask.shape[0] > 1 else torch.zeros(x.shape[0], dtype=torch.int64)
        return (x * attention_mask[rows][..., None]).cumsum(1)


def test_a_mask_moves_with_what_it_masks_even_where_the_file_names_them_apart(tmp_path: Path) -> None:
    class Strict(nn.Module):
        def forward(self, x, attention_mask):
            return (x.transpose(0, 1) * attention_mask.transpose(0, 1)[..., None]).transpose(0, 1).cumsum(1)

    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    path = stock(Strict(), example, tmp_path / "m.onnx", {"x": {0: "one"}, "attention_mask": {0: "two"}})
    result = verdict(MaskOfAnyBatch(), example, path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert all(t.sizes["one"] == t.sizes["two"] for t in result.trials)
    assert len({t.sizes["one"] for t in result.trials}) > 3


def test_sizes_that_belong_together_are_made_equal() -> None:
    links = dict.fromkeys(("a", "b"), frozenset({"a", "b"}))
    assert together({"a": 3, "b": 5, "c": 7}, links) == {"a": 3, "b": 3, "c": 7}


def test_the_file_is_also_run_without_onnxruntimes_optimisations(tmp_path: Path) -> None:
    result = crossed(nn.ReLU(), (torch.randn(2, 4),), tmp_path)
    assert "the example, without onnxruntime's optimisations" in {t.name for t in result.trials}


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(1, 1, 3)

    def forward(self, x):
        y = nn.functional.pad(self.mix(x), (2, 0, 2, 0))  # culprit
        return torch.max_pool2d(y, 2)


def test_a_rewrite_of_onnxruntime_that_keeps_the_file_from_opening_is_named(tmp_path: Path) -> None:
    model, example = Pool().eval(), (torch.randn(1, 1, 8, 8),)
    torch.onnx.export(model, example, str(tmp_path / "m.onnx"), input_names=["x"], verbose=False)
    result = verdict(model, example, tmp_path / "m.onnx")
    assert errors(result) == ["NUM007"]
    assert "`Pad_Fusion`" in result.diagnoses[0].message
    assert marked(result)


def test_a_trial_can_be_run_again(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = crossed(Pooled(0.0), example, tmp_path)
    for trial in result.trials:
        again, twice = result.inputs(trial), result.inputs(trial)
        assert all((again[n] == twice[n]).all() or trial.values == "nan" for n in again)
        assert again["x"].shape[0] == 2


class Noisy(nn.Module):
    def __init__(self, fixed: bool):
        super().__init__()
        self.fixed = fixed

    def forward(self, x):
        return x + (torch.ones(2, 4) if self.fixed else torch.randn(2, 4))  # culprit


def test_the_same_call_twice_tells_a_file_that_always_gives_the_same(tmp_path: Path) -> None:
    example = (torch.zeros(2, 4),)
    result = verdict(Noisy(fixed=False), example, stock(Noisy(fixed=True), example, tmp_path / "m.onnx"))
    assert errors(result) == ["NUM005"]  # no single answer is wrong: the values are drawn anew at every call
    assert marked(result)


class Accumulating(nn.Module):
    def __init__(self, keeps: bool):
        super().__init__()
        self.keeps = keeps
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        y = x + self.seen
        if self.keeps:
            self.seen.copy_(x.sum(0))  # culprit
        return y


def test_two_calls_in_a_row_tell_a_file_that_forgets(tmp_path: Path) -> None:
    example = (torch.randn(2, 4),)
    result = verdict(Accumulating(keeps=True), example, stock(Accumulating(keeps=False), example, tmp_path / "m.onnx"))
    assert errors(result) == ["NUM004"]  # every first call is right
    assert {t.outcome for t in result.trials} <= {"agree", "ill-conditioned"}
    assert marked(result)


def test_nan_goes_through_a_pool_of_maxima_and_a_file_that_loses_it_is_told_of(tmp_path: Path) -> None:
    model, example, few = nn.MaxPool2d(2), (torch.randn(2, 3, 6, 6),), torchferry.Budget(trials=4, mutants=0)
    told = verdict(model, example, stock(model, example, tmp_path / "m.onnx"), budget=few)
    assert "NUM014" in {d.code for d in told.diagnoses}  # wherever the NaN stands: some places it survives
    made = torchferry.export(model, example, tmp_path / "own.onnx", dynamic_shapes="none", budget=few)
    assert "NUM014" in {r.code for r in made.repairs}
    x = example[0].clone()
    x[1, 2, 3, 4] = torch.nan
    (got,) = torchferry.InferenceSession(made.path).run(None, made.feeds((x,)))
    np.testing.assert_array_equal(got, model(x).numpy())


class Kept(nn.Module):
    """Numbers that are not negative: as many as there are."""

    def forward(self, x):
        return x[x >= 0]


class KeptIfAny(nn.Module):
    def forward(self, x):
        return x[(x >= 0) & ~x.isnan()]


class KeptUnlessNegative(nn.Module):
    """Which NaN is not."""

    def forward(self, x):
        return x[~(x < 0)]


def test_sizes_that_hang_on_nan_are_the_files_business_only_if_the_model_asks_for_nan(tmp_path: Path) -> None:
    example = (torch.randn(3, 4),)
    path = stock(KeptUnlessNegative(), example, tmp_path / "twin.onnx")
    told = verdict(Kept(), example, path)
    assert not errors(told)
    assert "beyond-range" in {t.outcome for t in told.trials}
    assert errors(verdict(KeptIfAny(), example, path))
