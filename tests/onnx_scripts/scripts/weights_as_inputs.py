"""Weights that can be replaced when the file is run."""

import numpy as np
import onnxruntime as ort
import torch
import torch.onnx as onnx

model = torch.nn.Linear(3, 2).eval()
x = torch.randn(4, 3)
onnx.export(model, (x,), "open.onnx", keep_initializers_as_inputs=True, input_names=["x"])
options = ort.SessionOptions()
options.log_severity_level = 3
session = ort.InferenceSession("open.onnx", options)
assert {i.name for i in session.get_overridable_initializers()} == {"weight", "bias"}
feeds = {"x": x.numpy()}
np.testing.assert_allclose(session.run(None, feeds)[0], model(x).detach().numpy(), atol=1e-6)
zero = np.zeros((2, 3), np.float32)
(moved,) = session.run(None, {**feeds, "weight": zero})
np.testing.assert_allclose(moved, np.broadcast_to(model.bias.detach().numpy(), (4, 2)), atol=1e-6)
