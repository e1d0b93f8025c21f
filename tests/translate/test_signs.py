"""Quantised weights of a file of ours: uint8 around 128, so that no processor cuts their products off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.ao.quantization.fx._decomposed

import torchferry
from torchferry.check.support import products
from torchferry.saturation.elsewhere import without_vnni

q = torch.ops.quantized_decomposed


class Quantised(torch.nn.Module):
    """What `torch.export` makes of a model that was quantised with PT2E: weights in int8, of one scale or one for each row."""

    def __init__(self, *, rows: bool) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(0)
        self.register_buffer("w", torch.randint(-127, 128, (8, 16), generator=random, dtype=torch.int8))
        self.register_buffer("steps", torch.linspace(0.01, 0.02, 8))
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.rows = rows

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rounded = (0.02, 128, 0, 255, torch.uint8)
        x = q.dequantize_per_tensor(q.quantize_per_tensor(x, *rounded), *rounded)
        if self.rows:
            w = q.dequantize_per_channel(self.w, self.steps, self.zeros, 0, -127, 127, torch.int8)
        else:
            w = q.dequantize_per_tensor(self.w, 0.01, 0, -127, 127, torch.int8)
        y = torch.nn.functional.linear(x, w)
        coarse = (0.5, 128, 0, 255, torch.uint8)
        return q.dequantize_per_tensor(q.quantize_per_tensor(y, *coarse), *coarse)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_weights_in_int8_are_written_as_uint8_and_verified(rows: bool, tmp_path: Path) -> None:
    model = Quantised(rows=rows).eval()
    result = torchferry.export(model, (torch.randn(3, 16),), tmp_path / "m.onnx")
    made = onnx.load(tmp_path / "m.onnx")
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    assert not [name for name, array in stored.items() if array.dtype == np.int8]
    weights = next(array for array in stored.values() if array.size == 8 * 16)
    np.testing.assert_array_equal(np.sort(weights.astype(int), axis=None) - 128, np.sort(model.w.numpy().astype(int), axis=None))
    with without_vnni():
        assert len(list(products.found(made))) == 1, "there is a product that onnxruntime fuses"
        assert not products.findings(made, tmp_path)
    assert result.ok
