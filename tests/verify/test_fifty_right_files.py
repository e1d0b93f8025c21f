"""Fifty correct files of real architectures, made by torch.onnx itself: not one false alarm.

Whether a file is correct is told without the verifier: it is run beside eager on inputs made here, at several sizes.
A file that torch.onnx makes wrong, or cannot make at all, does not count; the figure says how many did.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import torchferry
from torchferry.foreign import onnxruntime as ort
from torchferry.inputs.binding.trees import outputs

sys.path.append(str(Path(__file__).parents[1] / "zoo"))
from architectures import ARCHITECTURES, redraw

Made = tuple[nn.Module, Mapping[str, Any]]
WANTED = 50


def plain(model: nn.Module, *shape: int) -> Callable[[], Made]:
    """Return a builder for a module that takes one float tensor."""
    return lambda: (redraw(model), {"input": torch.randn(shape, generator=torch.Generator().manual_seed(3))})


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]):
        super().__init__()
        self.rnn, self.head = kind(8, 12, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(24, 5)

    def forward(self, input):
        return self.head(self.rnn(input)[0])


class Residual(nn.Module):
    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, input):
        return input + self.body(input)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Conv2d(3, 4, k, padding=k // 2) for k in (1, 3, 5)])

    def forward(self, input):
        return torch.cat([p(input).relu() for p in self.parts] + [nn.functional.max_pool2d(input, 3, 1, 1)], 1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.low = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(11, 2, 1)

    def forward(self, input):
        low = self.low(self.down(input).relu()).relu()
        return self.out(torch.cat([input, self.up(low)], 1))


def separable(channels: int) -> nn.Module:
    depthwise, pointwise = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels), nn.Conv2d(channels, channels, 1)
    return Residual(nn.Sequential(depthwise, nn.BatchNorm2d(channels), nn.Hardswish(), pointwise, nn.BatchNorm2d(channels)))


OWN: dict[str, Callable[[], Made]] = {
    "lstm": plain(Recurrent(nn.LSTM), 2, 6, 8),
    "gru": plain(Recurrent(nn.GRU), 2, 6, 8),
    "rnn": plain(Recurrent(nn.RNN), 2, 6, 8),
    "encoder": plain(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, norm_first=True), 2, 6, 16),
    "unet": plain(UNet(), 2, 3, 16, 16),
    "inception": plain(Branches(), 2, 3, 12, 12),
    "mobilenet": plain(nn.Sequential(*[separable(6) for _ in range(4)]), 2, 6, 12, 12),
    "residual": plain(nn.Sequential(*[Residual(nn.Sequential(nn.Linear(24, 24), nn.GELU())) for _ in range(16)]), 2, 24),
    "mixer": plain(nn.Sequential(nn.LayerNorm(10), Residual(nn.Linear(10, 10)), nn.SiLU(), nn.Linear(10, 4)), 2, 7, 10),
    "wavenet": plain(nn.Sequential(*[Residual(nn.Conv1d(6, 6, 3, padding=2**n, dilation=2**n)) for n in range(4)]), 2, 6, 40),
    "groupnorm": plain(nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.Mish(), nn.AvgPool2d(2)), 2, 3, 14, 14),
    "autoencoder": plain(nn.Sequential(nn.Linear(32, 8), nn.ELU(), nn.Linear(8, 3), nn.Softplus(), nn.Linear(3, 32)), 2, 32),
}
MODELS = {**{f"zoo:{n}": b for n, b in ARCHITECTURES.items()}, **OWN}


def exported(model: nn.Module, example: Mapping[str, Any], path: Path) -> bool:
    """Return whether torch.onnx made a file: with batch and length free where it can, else with the batch free, else fixed."""
    tokens = ("input_ids", "attention_mask")
    free = torch.export.Dim.DYNAMIC
    both = {k: {0: free, **({1: free} if k in tokens else {})} for k in example}
    for shapes in (both, {k: {0: free} for k in example}, None):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arguments = {"kwargs": dict(copy.deepcopy(example)), "dynamic_shapes": shapes, "verbose": False}
                torch.onnx.export(copy.deepcopy(model), (), str(path), dynamo=True, **arguments)
        except Exception:  # whatever keeps torch.onnx from making a file: the next, narrower one may do
            continue
        return True
    return False


def calls(example: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the example, another batch of it, other lengths where there are tokens, and another padding."""
    yield example
    yield {k: torch.cat([v, v[:1]]) for k, v in example.items()}
    yield {k: v[:1] for k, v in example.items()}
    yield {k: v.flip(0) * 3 if v.is_floating_point() else v for k, v in example.items()}
    texts = ("input_ids", "attention_mask")
    yield {k: torch.cat([v, v], 1) if k in texts else v for k, v in example.items()}
    yield {k: v[:, :3] if k in texts else v for k, v in example.items()}
    yield {k: torch.cat([v] * 8, 1) if k in texts else v for k, v in example.items()}
    yield {k: v.flip(1) if k == "attention_mask" else v for k, v in example.items()}


def right(model: nn.Module, example: Mapping[str, Any], path: Path) -> bool:
    """Return whether the file agrees with eager wherever it runs, at the example at least; padded positions do not count."""
    session = ort.session(path)
    names = {i.name for i in session.get_inputs()}
    for n, call in enumerate(calls(example)):
        try:
            with torch.no_grad():
                want = [torch.as_tensor(leaf) for _, leaf in outputs(copy.deepcopy(model)(**copy.deepcopy(dict(call))))]
        except Exception:  # of some models other inputs go along with the text: boxes, for one
            if n == 0:
                raise
            continue
        try:
            got = session.run(None, {k: v.numpy() for k, v in call.items() if k in names})
        except Exception:  # sizes that the file does not declare
            if n == 0:
                return False
            continue
        if len(want) != len(got) or not all(same(w, g, call.get("attention_mask")) for w, g in zip(want, got, strict=True)):
            return False
    return True


def same(want: torch.Tensor, got: np.ndarray, mask: torch.Tensor | None) -> bool:
    expected = want.float().numpy()
    if expected.shape != got.shape:
        return False
    if mask is not None and expected.shape[:2] == tuple(mask.shape):
        expected, got = expected[mask.bool().numpy()], got[mask.bool().numpy()]
    return bool(np.allclose(expected, got, rtol=1e-3, atol=1e-4))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_fifty_right_files_raise_no_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passed, alarmed, left_out = [], {}, []
    for name, build in MODELS.items():
        model, example = build()
        if hasattr(model, "config"):
            model.config.use_cache = False
        path = tmp_path / name.replace(":", "-") / "model.onnx"
        path.parent.mkdir()
        if not exported(model, example, path) or not right(model, example, path):
            left_out.append(name)
            continue
        result = torchferry.verify(model, path, (), kwargs=dict(example), check=False)
        if result.ok:
            passed.append(name)
        else:
            alarmed[name] = [f"{d.code} {d.message}" for d in result.diagnoses if d.severity == "error"]
        with capsys.disabled():
            print(f"\n{name}: {'passed' if result.ok else alarmed[name]}, {len(result.trials)} trials", end="", flush=True)
    with capsys.disabled():
        print(
            f"\n{len(passed)} right files passed, {len(alarmed)} false alarms; torch.onnx itself fails on {', '.join(left_out)}"
        )
    assert not alarmed
    assert len(passed) >= WANTED
