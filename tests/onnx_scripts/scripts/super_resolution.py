"""A network that makes pictures larger, for any number of them, and what onnxruntime makes of the file."""

import numpy as np
import onnx as checker
import onnxruntime
import torch
import torch.nn.functional as F
import torch.onnx as onnx
from torch import nn


class Larger(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 5, padding=2)
        self.second = nn.Conv2d(8, factor**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(factor)

    def forward(self, x):
        return self.shuffle(self.second(F.relu(self.first(x))))


model = Larger(3).eval()
x = torch.randn(1, 1, 12, 12)
onnx.export(
    model,
    x,
    "larger.onnx",
    export_params=True,
    opset_version=17,
    do_constant_folding=True,
    input_names=["input"],
    output_names=["output"],
    dynamic_axes={"input": {0: "batch_size"}, "output": {0: "batch_size"}},
)
checker.checker.check_model(checker.load("larger.onnx"))
session = onnxruntime.InferenceSession("larger.onnx", providers=["CPUExecutionProvider"])
many = torch.randn(5, 1, 12, 12)
(got,) = session.run(None, {session.get_inputs()[0].name: many.numpy()})
np.testing.assert_allclose(model(many).detach().numpy(), got, rtol=1e-3, atol=1e-5)
