"""Weights of a file are found in the model through what exporters do to them, and what is not the model's is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from exported import FORMS, changed, scripted, traced
from onnx import numpy_helper
from torch import nn

from torchferry.verify.coverage.recipes import Normalised, Rows
from torchferry.verify.coverage.unlike import Unlike, unlike
from torchferry.verify.coverage.weights import Weights, weights

Args = tuple[torch.Tensor, ...]


def compared(model: nn.Module, args: Args, path: Path) -> Weights:
    bound = SimpleNamespace(module=model, args=args, prefix="")
    read = onnx.load(str(path), load_external_data=False)
    return weights(SimpleNamespace(bound=bound, file=SimpleNamespace(path=path), model=read))  # type: ignore[arg-type]


def lost(model: nn.Module, args: Args, path: Path) -> list[str]:
    """Return what is in the file and not in the model, and the other way round; something must have been found."""
    work = compared(model, args, path)
    assert work.found
    return [s.name for s in work.missing] + work.unfound


class Flat(nn.Module):
    """As torchferry binds models: what forward gives is a tuple."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x):
        out = self.model(x)
        return (out[0] if isinstance(out, tuple) else out,)


class Tables(nn.Module):
    """Rows of a table, a table made in forward, a weight made of two, and a tensor that is no parameter."""

    def __init__(self):
        super().__init__()
        self.place, self.size, self.way = nn.Embedding(20, 8), nn.Parameter(torch.rand(8, 1)), nn.Parameter(torch.randn(8, 8))
        self.plain = torch.randn(8, 8)

    def forward(self, x):
        waves = torch.sin(torch.arange(8.0)[:, None] * torch.arange(8.0))
        weight = self.size * self.way / self.way.norm(dim=1, keepdim=True)
        return F.linear(x, weight) @ waves + self.place(torch.arange(5)) @ self.plain


def normalised() -> nn.Module:
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 6, 3, bias=False), nn.BatchNorm2d(6))
    for norm in (layers[1], layers[4]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        nn.init.uniform_(norm.weight, 0.5, 2)
    return layers


MODELS: dict[str, tuple[Callable[[], nn.Module], Args]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6), nn.Linear(6, 3)), (torch.randn(2, 8),)),
    "normalised": (normalised, (torch.randn(2, 3, 9, 9),)),
    "gru": (lambda: nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True), (torch.randn(2, 7, 6),)),
    "lstm": (lambda: nn.LSTM(6, 5, bidirectional=True, batch_first=True), (torch.randn(2, 7, 6),)),
    "tables": (Tables, (torch.randn(2, 5, 8),)),
    "half": (lambda: nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 3)).half(), (torch.randn(2, 8).half(),)),
    "clones": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False),
        (torch.randn(2, 5, 8),),
    ),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_every_weight_is_found_in_every_form(name: str, form: Callable[..., Path], tmp_path: Path) -> None:
    build, args = MODELS[name]
    if name == "clones" and form is not traced:
        pytest.skip("the old exporter does not take torch's own encoder")
    model = Flat(build()).eval()
    assert lost(model, args, form(model, args, tmp_path / "m.onnx")) == []


def test_gates_in_another_order_are_rows_and_folded_normalisations_are_told(tmp_path: Path) -> None:
    model, args = Flat(nn.GRU(6, 5, batch_first=True)).eval(), (torch.randn(2, 7, 6),)
    work = compared(model, args, scripted(model, args, tmp_path / "gru.onnx"))
    assert any(isinstance(f.recipe, Rows) and len(f.recipe.pieces) > 1 for f in work.found)
    model, args = Flat(normalised()).eval(), (torch.randn(2, 3, 9, 9),)
    work = compared(model, args, scripted(model, args, tmp_path / "conv.onnx"))
    assert sum(isinstance(f.recipe, Normalised) for f in work.found) == 4
    assert not any(f.exact for f in work.found if isinstance(f.recipe, Normalised))


@pytest.mark.parametrize("name", [n for n in MODELS if n != "tables"])
def test_a_recipe_makes_the_files_own_numbers_again(name: str, tmp_path: Path) -> None:
    build, args = MODELS[name]
    model = Flat(build()).eval()
    work = compared(model, args, traced(model, args, tmp_path / "m.onnx"))
    for one in work.found:
        made = one.recipe.made(work.tensors, {})
        assert made is not None
        assert (made == one.stored.values()).all() if one.exact else np.allclose(made, one.stored.values(), rtol=1e-5, atol=1e-6)


class Words(nn.Module):
    def __init__(self, rows: int = 500):
        super().__init__()
        self.table, self.out = nn.Embedding(rows, 8), nn.Linear(8, 8)

    def forward(self, x):
        return (self.out(self.table(x)),)


IDS = (torch.randint(0, 20, (2, 5)),)


def nearest(model: nn.Module, change: Callable[[Any], object], tmp_path: Path) -> list[Unlike]:
    path = scripted(changed(model, change), IDS, tmp_path / "m.onnx")
    return list(unlike(compared(model, IDS, path)))


def _swap(twin: Any) -> None:
    twin.table.weight[[7, 400]] = twin.table.weight[[400, 7]].clone()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.table.weight[123].add_(1), "1 of 500 rows, first at [123, 0]"),
        (lambda t: t.table.weight[123, 4].add_(1e-3), "1 of 4000 values, first at [123, 4]"),
        (_swap, "2 of 500 rows, first at [7, 0]"),
        (lambda t: t.table.weight[:, 6:].mul_(-1), "2 of 8 columns, first at [0, 6]"),
    ],
    ids=["a row", "a value", "rows swapped", "columns"],
)
def test_what_was_changed_in_a_weight_is_named(change: Callable[[Any], object], words: str, tmp_path: Path) -> None:
    (told,) = nearest(Words().eval(), change, tmp_path)
    assert (told.name, told.words, told.changed) == ("`table.weight`", words, True)


def test_another_weight_altogether_is_told_from_a_changed_one(tmp_path: Path) -> None:
    (told,) = nearest(Words().eval(), lambda t: t.out.weight.normal_(), tmp_path)
    assert (told.name, told.words, told.changed) == ("`out.weight`", "every value", False)


def test_what_rounding_changes_and_what_stands_for_infinity_is_no_difference(tmp_path: Path) -> None:
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.full((6, 6), float("-inf")).triu(1) + torch.randn(6, 6))

        def forward(self, x):
            return (x @ self.mask.softmax(-1),)

    model = Masked()
    path = scripted(model, (torch.randn(2, 6),), tmp_path / "m.onnx", fold=False)
    proto = onnx.load(str(path))
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor).copy() * (1 + 1e-7)
        values[values < -1e30] = -3.4e38
        tensor.CopyFrom(numpy_helper.from_array(values.astype("float32"), tensor.name))
    onnx.save(proto, str(path))
    assert list(unlike(compared(model, (torch.randn(2, 6),), path))) == []


def test_a_buffer_that_forward_writes_may_hold_anything(tmp_path: Path) -> None:
    class Scratch(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(8, 8)
            self.register_buffer("scratch", torch.zeros(16, 8))

        def forward(self, x):
            self.scratch[: x.shape[0]] = self.out(x)
            return (self.scratch[: x.shape[0]] * 2,)

    model, args = Scratch().eval(), (torch.randn(3, 8),)
    path = scripted(copy.deepcopy(model), args, tmp_path / "m.onnx", fold=False)
    model(torch.randn(5, 8))
    assert list(unlike(compared(model, args, path))) == []


def test_tensors_of_the_closure_are_the_models_too(tmp_path: Path) -> None:
    table = torch.randn(50, 4)
    other = table.clone()
    other[37] += 1

    class Closed(nn.Module):
        table = other

        def forward(self, x):
            return (self.table[x],)

    path = scripted(Closed(), (torch.tensor([1, 2]),), tmp_path / "m.onnx")
    Closed.table = table
    (told,) = unlike(compared(Closed(), (torch.tensor([1, 2]),), path))
    assert told.words == "1 of 50 rows, first at [37, 0]"
