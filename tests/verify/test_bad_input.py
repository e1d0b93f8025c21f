"""A file that is not the model's, one that does not open, a model that raises: told in words, never with a traceback."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from crossing import errors, stock, verdict
from torch import nn

import torchferry


class Pair(nn.Module):
    def forward(self, left, right):
        return left + right


EXAMPLE = (torch.randn(2, 4), torch.randn(2, 4))


def told(result: torchferry.Result) -> str:
    return " ".join(" ".join((d.message, d.help, *d.evidence)) for d in result.diagnoses if d.severity == "error")


def test_a_file_with_other_inputs_is_told_by_their_names(tmp_path: Path) -> None:
    class Three(nn.Module):
        def forward(self, left, right, scale):
            return (left + right) * scale

    path = stock(Three(), (*EXAMPLE, torch.ones(2, 4)), tmp_path / "m.onnx")
    result = verdict(Pair(), EXAMPLE, path)
    assert not result.ok
    assert errors(result)
    assert "`scale`" in told(result)


def test_a_file_with_inputs_of_another_dtype_or_rank_is_told(tmp_path: Path) -> None:
    whole = stock(Pair(), tuple(torch.ones(2, 4, dtype=torch.int64) for _ in range(2)), tmp_path / "int.onnx")
    assert "int64" in told(verdict(Pair(), EXAMPLE, whole))
    flat = stock(Pair(), (torch.ones(4), torch.ones(4)), tmp_path / "flat.onnx")
    assert "axes" in told(verdict(Pair(), EXAMPLE, flat))


def test_a_file_with_more_outputs_is_told(tmp_path: Path) -> None:
    class Both(nn.Module):
        def forward(self, left, right):
            return left + right, left - right

    result = verdict(Pair(), EXAMPLE, stock(Both(), EXAMPLE, tmp_path / "m.onnx"))
    assert errors(result) == ["NUM013"]
    assert "2 outputs, expected 1" in told(result)


def test_a_file_of_which_no_session_can_be_made_is_told(tmp_path: Path) -> None:
    path = stock(Pair(), EXAMPLE, tmp_path / "m.onnx")
    file = onnx.load(str(path))
    file.graph.node[0].domain = "somebody.else"
    file.opset_import.append(onnx.helper.make_opsetid("somebody.else", 1))
    onnx.save(file, str(path))
    result = verdict(Pair(), EXAMPLE, path)
    assert not result.ok
    assert "somebody.else" in told(result)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12"])
def test_what_is_no_model_at_all_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    result = verdict(Pair(), EXAMPLE, tmp_path / "m.onnx")
    assert not result.ok
    assert errors(result)


def test_a_file_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(torchferry.UsageError, match="there is no file"):
        verdict(Pair(), EXAMPLE, tmp_path / "nothing.onnx")


class Refusing(nn.Module):
    def forward(self, left, right):
        raise ValueError("left and right must be normalised")  # culprit


def test_a_model_that_raises_on_its_own_example_is_told_with_its_words_and_line(tmp_path: Path) -> None:
    result = verdict(Refusing(), EXAMPLE, stock(Pair(), EXAMPLE, tmp_path / "m.onnx"))
    assert not result.ok
    error = next(d for d in result.diagnoses if d.severity == "error")
    assert "must be normalised" in " ".join((error.message, *error.evidence))
    assert error.location.file == __file__


def test_check_raises_verify_error_with_the_result(tmp_path: Path) -> None:
    path = stock(nn.Softplus(), (torch.randn(2, 4),), tmp_path / "m.onnx")
    with pytest.raises(torchferry.VerifyError) as caught:
        torchferry.verify(nn.ReLU(), path, (torch.randn(2, 4),))
    assert not caught.value.result.ok
