"""A file without weights, which are fed."""

import numpy as np
import onnx as format
import onnxruntime as ort
import torch
import torch.onnx as onnx

model = torch.nn.Linear(3, 2).eval()
x = torch.randn(4, 3)
onnx.export(model, (x,), "empty.onnx", export_params=False, keep_initializers_as_inputs=True, input_names=["x"])
assert not format.load("empty.onnx").graph.initializer
weights = {name: value.numpy() for name, value in model.state_dict().items()}
(got,) = ort.InferenceSession("empty.onnx").run(None, {"x": x.numpy(), **weights})
np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-6)
