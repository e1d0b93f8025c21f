"""The file as bytes that never touch a disk."""

import io

import numpy as np
import onnx as format
import onnxruntime as ort
import torch
from torch import nn, onnx

model = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).eval()
buffer = io.BytesIO()
x = torch.randn(2, 4)
onnx.export(model, (x,), buffer, input_names=["x"], output_names=["y"])
buffer.seek(0)
assert len(format.load(buffer).graph.node) > 0
(y,) = ort.InferenceSession(buffer.getvalue()).run(["y"], {"x": x.numpy()})
np.testing.assert_allclose(y, model(x).detach().numpy(), atol=1e-6)
