"""A file from any exporter is bound to the model's arguments by its own declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from torchferry.inputs import bind
from torchferry.records import Case, Job, Step
from torchferry.records.findings import FileHasOtherInputs, FileLacksInput

X, MASK = torch.randn(2, 5, 4), torch.ones(2, 5)


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask[:, :, None]


def saved(path: Path, inputs: dict[str, tuple[int, list[Any]]]) -> Path:
    """Return the path of a file that declares these inputs, whatever it computes."""
    values = [helper.make_tensor_value_info(n, dtype, shape) for n, (dtype, shape) in inputs.items()]
    first = next(iter(inputs))
    output = helper.make_tensor_value_info("y", inputs[first][0], None)
    graph = helper.make_graph([helper.make_node("Identity", [first], ["y"])], "g", values, [output])
    onnx.save(helper.make_model(graph), path)
    return path


def step(path: Path) -> Step:
    return bind(Case(Job(Masked(), (X, MASK), onnx=path)))


FLOAT = TensorProto.FLOAT


def test_inputs_are_matched_by_name_and_declared_sizes_move(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"mask": (FLOAT, ["N", "T"]), "x": (FLOAT, ["N", "T", 4])})
    answer = step(path)
    assert {s.name: s.shape for s in answer.value.signature.inputs} == {"x": ("N", "T", 4), "mask": ("N", "T")}
    assert answer.value.outputs == ("y",)
    assert all(d.asked for d in answer.value.signature.dims)


@pytest.mark.parametrize(
    "size", ["2*a", "a + b", "-a", "None", "class", "\u00e9", "\ufb01", "9**9**9", "(" * 300, "a\n", "1e3", "()"]
)
def test_whatever_a_file_calls_its_sizes_they_move(size: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"x": (FLOAT, [size, "T", 4]), "mask": (FLOAT, [size, "T"])})
    found = step(path).value
    assert [len({n for n in s.shape if isinstance(n, str)}) for s in found.signature.inputs] == [2, 2]
    assert [tuple(t.shape) for t in found.vary({found.signature.dims[0].name: 6})] == [(6, 5, 4), (6, 5)]


def test_other_names_are_matched_by_position(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"input.1": (FLOAT, ["N", 5, 4]), "m": (FLOAT, ["N", 5])})
    assert [(s.name, s.shape) for s in step(path).value.signature.inputs] == [("input.1", ("N", 5, 4)), ("m", ("N", 5))]


def test_sizes_with_names_of_their_own_are_tied_as_the_model_ties_them(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"x": (FLOAT, ["x_0", "x_1", 4]), "mask": (FLOAT, ["m_0", "m_1"])})
    x, mask = (s.shape for s in step(path).value.signature.inputs)
    assert mask == x[:2]


def test_fixed_sizes_stay_fixed(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"x": (FLOAT, [2, 5, 4]), "mask": (FLOAT, [2, 5])})
    answer = step(path)
    assert answer.value.signature.dims == ()
    assert answer.value.dynamic_shapes is None


def test_an_input_that_the_file_lacks_is_noted_and_still_varied(tmp_path: Path) -> None:
    answer = step(saved(tmp_path / "m.onnx", {"x": (FLOAT, ["N", 5, 4])}))
    assert [type(f) for f in answer.findings] == [FileLacksInput]
    assert [tuple(t.shape) for t in answer.value.vary({"N": 3})] == [(3, 5, 4), (3, 5)]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"x": (FLOAT, [2, 5, 4]), "mask": (FLOAT, [2, 5]), "more": (FLOAT, [1])}, "wants `more`"),
        ({"x": (TensorProto.DOUBLE, [2, 5, 4]), "mask": (FLOAT, [2, 5])}, "`x` is float64"),
        ({"x": (FLOAT, [2, 5]), "mask": (FLOAT, [2, 5])}, "has 2 axes"),
        ({"x": (FLOAT, [3, 5, 4]), "mask": (FLOAT, [3, 5])}, "has 3 at axis 0"),
    ],
)
def test_a_file_of_another_model_is_refused(tmp_path: Path, inputs: dict[str, Any], words: str) -> None:
    answer = step(saved(tmp_path / "m.onnx", inputs))
    assert answer.fault is not None
    assert words in answer.fault.text
    assert {type(f) for f in answer.findings} == {FileHasOtherInputs}


@pytest.mark.parametrize("size", ["-" * 20_000 + "n", "(" * 300 + "n" + ")" * 300, "n // 0", "9**9**9**9", "__import__('os')"])
def test_a_size_that_is_no_size_is_a_name_like_any_other(size: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", {"x": (FLOAT, [size, 5, 4]), "mask": (FLOAT, [size, 5])})
    assert step(path).fault is None
