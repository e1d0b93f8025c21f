"""Recurrent layers become ONNX's own operators, for any length, packed or not, projected or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from torchferry.pipeline import _answer
from torchferry.records import Case, Job


class Packed(nn.Module):
    def __init__(self, kind: Any, enforce_sorted: bool = False, total: bool = False, **settings: Any) -> None:
        super().__init__()
        self.rnn = kind(3, 4, batch_first=True, **settings)
        self.enforce_sorted, self.total = enforce_sorted, total

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=self.enforce_sorted)
        out, last = self.rnn(packed)
        padded, found = pad_packed_sequence(
            out, batch_first=True, padding_value=-1.0, total_length=x.size(1) if self.total else None
        )
        return padded, last, found


class OnTheSteps(nn.Module):
    """Looks at the packed data itself."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.linear = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        out, _ = self.rnn(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        out = PackedSequence(self.linear(out.data).relu(), out.batch_sizes, out.sorted_indices, out.unsorted_indices)
        return pad_packed_sequence(out, batch_first=True)[0]


class Padded(nn.Module):
    def __init__(self, with_start: bool, **settings: Any) -> None:
        super().__init__()
        self.rnn, self.with_start = nn.LSTM(3, 4, **settings), with_start

    def forward(self, x: torch.Tensor, start: torch.Tensor) -> Any:
        layers = self.rnn.num_layers * (2 if self.rnn.bidirectional else 1)
        size = self.rnn.proj_size or self.rnn.hidden_size
        given = (start.expand(layers, x.size(1), size) * 0.5, start.expand(layers, x.size(1), self.rnn.hidden_size).clone())
        return self.rnn(x, given if self.with_start else None)


def file_of(model: nn.Module, args: tuple[Any, ...], folder: Path) -> Path:
    case = Case(Job(model.eval(), args, workspace=folder))
    for stage in ("inputs", "capture", "translate"):
        case = case.plus(_answer(stage, case))  # type: ignore[arg-type]
        assert case.fault(stage) is None, case.fault(stage)  # type: ignore[arg-type]
    return case.value("translate").path


def compare(model: nn.Module, path: Path, calls: list[tuple[Any, ...]]) -> None:
    session = onnxruntime.InferenceSession(str(path))
    for call in calls:
        with torch.no_grad():
            want = torch.utils._pytree.tree_leaves(model(*call))
        feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), call, strict=True)}
        for expected, got in zip(want, session.run(None, feeds), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), expected, rtol=1e-4, atol=1e-5)


def batch(size: int, time: int, *lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(size, time, 3), torch.tensor(lengths)


PACKED = {
    "lstm": (lambda: Packed(nn.LSTM), "LSTM"),
    "gru in both directions and two layers": (lambda: Packed(nn.GRU, bidirectional=True, num_layers=2), "GRU"),
    "rnn with relu, all of the input's length": (lambda: Packed(nn.RNN, nonlinearity="relu", total=True), "RNN"),
    "projected lstm in both directions": (lambda: Packed(nn.LSTM, proj_size=2, bidirectional=True), "LSTM"),
    "data changed step by step": (OnTheSteps, "GRU"),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_sequences_keep_their_lengths(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    build, operator = PACKED[name]
    model = build().eval()
    path = file_of(model, batch(3, 5, 5, 2, 4), tmp_path)
    assert operator in {node.op_type for node in onnx.load(path).graph.node}
    compare(model, path, [batch(3, 5, 5, 2, 4), batch(2, 7, 3, 7), batch(3, 6, 1, 4, 2), batch(4, 5, 1, 1, 5, 2)])


def test_sorted_lengths_are_taken_as_they_come(tmp_path: Path) -> None:
    model = Packed(nn.LSTM, enforce_sorted=True).eval()
    compare(model, file_of(model, batch(3, 5, 5, 4, 2), tmp_path), [batch(2, 6, 6, 1), batch(3, 4, 4, 4, 4)])


@pytest.mark.parametrize("with_start", [False, True])
def test_projected_lstm_takes_any_length_and_any_first_state(with_start: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Padded(with_start, proj_size=2, num_layers=2, bidirectional=True).eval()
    start = torch.tensor(0.7)
    path = file_of(model, (torch.randn(4, 2, 3), start), tmp_path)
    compare(model, path, [(torch.randn(9, 3, 3), torch.tensor(-1.3)), (torch.randn(1, 1, 3), start)] if with_start else [])


def test_double_precision_layers_are_computed_in_single(tmp_path: Path) -> None:
    model = nn.LSTM(3, 4).double().eval()
    path = file_of(model, (torch.randn(4, 2, 3, dtype=torch.float64),), tmp_path)
    compare(model, path, [(torch.randn(6, 5, 3, dtype=torch.float64),)])
