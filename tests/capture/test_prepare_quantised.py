"""Quantised modules written out in floats give the very numbers of torch's integer kernels, or what these should give.

Where the processor cuts a kernel's sums off, the numbers are held against what the arithmetic says: see tests/test_audit.py.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from torchferry.capture import prepare
from torchferry.edits.capture import PrepareQuantised
from torchferry.quantised.audit import Audited
from torchferry.records.findings import QuantisedPart

quantization = torch.ao.quantization
pytestmark = pytest.mark.filterwarnings("ignore")


class Flat(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def run(self, tensors: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.utils._pytree.tree_leaves(self.model(*tensors)))


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **settings: Any) -> None:
        super().__init__()
        self.rnn = kind(5, 6, **settings)

    def forward(self, x: torch.Tensor) -> Any:
        return self.rnn(x)


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.relu, self.linear = nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Linear(4, 3)
        self.sum = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(self.enter(x)))
        x = nn.functional.max_pool2d(self.sum.add(x, x), 2)
        return self.leave(self.linear(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)))


def dynamic(model: nn.Module, kinds: set[Any], dtype: torch.dtype = torch.qint8) -> nn.Module:
    return quantization.quantize_dynamic(model.eval(), kinds, dtype=dtype)


def static() -> nn.Module:
    model = Convolved().eval()
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    quantization.prepare(model, inplace=True)
    model(torch.randn(4, 2, 6, 6))
    return quantization.convert(model)


def trained() -> nn.Module:
    model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).train()
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    quantization.prepare_qat(model, inplace=True)
    model(torch.randn(4, 2, 6))
    return model.eval().apply(quantization.disable_observer)


MODELS = {
    "linear": (lambda: dynamic(nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 3)), {nn.Linear}), (4, 7)),
    "linear-float16": (lambda: dynamic(nn.Sequential(nn.Linear(7, 3)), {nn.Linear}, torch.float16), (4, 7)),
    "lstm": (lambda: dynamic(Recurrent(nn.LSTM, bidirectional=True), {nn.LSTM}), (6, 3, 5)),
    "gru": (lambda: dynamic(Recurrent(nn.GRU, batch_first=True), {nn.GRU}), (3, 6, 5)),
    "static": (static, (3, 2, 6, 6)),
    "trained": (trained, (3, 2, 6)),
}


def both(name: str, scale: float = 1.0) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    build, shape = MODELS[name]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        flat = Flat(build())
        plain = prepare.apply(copy.deepcopy(flat), (), [PrepareQuantised("arithmetic")])
        x = torch.randn(*shape) * scale
        return right(flat, x), plain.run((x,))  # type: ignore[operator]


def right(flat: Flat, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what torch's kernels give; where this processor cuts their sums off, what the sums come to."""
    with Audited():
        return flat.run((x,))


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-5, 3.0])
@pytest.mark.parametrize("name", MODELS)
def test_written_out_modules_give_the_numbers_of_the_kernels(name: str, scale: float) -> None:
    for want, got in zip(*both(name, scale), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def test_not_a_number_is_rounded_to_what_the_kernel_rounds_it_to() -> None:
    torch.manual_seed(0)
    flat = Flat(dynamic(nn.Sequential(nn.Linear(6, 3)), {nn.Linear}))
    plain = prepare.apply(copy.deepcopy(flat), (), [PrepareQuantised()])
    x = torch.randn(2, 6)
    x[1, 2] = float("nan")
    torch.testing.assert_close(plain.run((x,)), right(flat, x))  # type: ignore[operator]


@pytest.mark.parametrize("width", [4, 7, 16, 37])
def test_halves_go_where_the_dynamic_kernel_lets_them_go(width: int) -> None:
    torch.manual_seed(width)
    flat = Flat(dynamic(nn.Sequential(nn.Linear(width, 5)), {nn.Linear}))
    plain = prepare.apply(copy.deepcopy(flat), (), [PrepareQuantised("arithmetic")])
    for _ in range(50):
        x = torch.randint(-6, 7, (3, width)) / 2
        torch.testing.assert_close(plain.run((x,)), right(flat, x), rtol=1e-5, atol=1e-6)  # type: ignore[operator]


def test_halves_go_where_the_kernel_lets_them_go() -> None:
    flat = Flat(static())
    plain = prepare.apply(copy.deepcopy(flat), (), [PrepareQuantised()])
    step = float(flat.model.enter.scale)
    x = torch.arange(-36, 36).reshape(1, 2, 6, 6) * (step / 2)
    torch.testing.assert_close(plain.run((x,)), right(flat, x))  # type: ignore[operator]


def test_nothing_opaque_is_left_and_the_survey_is_silent_afterwards() -> None:
    flat = Flat(dynamic(Recurrent(nn.LSTM), {nn.LSTM}))
    before = {type(f) for f in prepare.survey(flat, ())}
    plain = prepare.apply(copy.deepcopy(flat), (), [PrepareQuantised()])
    assert QuantisedPart in before
    assert QuantisedPart not in {type(f) for f in prepare.survey(plain, ())}
    assert not any(isinstance(v, torch.ScriptObject) for part in plain.modules() for v in vars(part).values())
