"""Weights in a file of their own, and a report."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
import torch.onnx as onnx

model = torch.nn.Linear(64, 64).eval()
x = torch.randn(2, 64)
onnx.export(model, (x,), Path("large.onnx"), external_data=True, report=True, artifacts_dir="artifacts", input_names=["x"])
assert len(list(Path().glob("large.onnx*data"))) == 1
assert Path("large.onnx").stat().st_size < 64 * 64 * 4
assert list(Path("artifacts").glob("*.md"))
(got,) = ort.InferenceSession("large.onnx").run(None, {"x": x.numpy()})
np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-5)
