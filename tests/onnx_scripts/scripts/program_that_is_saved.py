"""The new exporter's way: a program that can be called, looked at, and saved."""

import torch
import torch.onnx as onnx
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0, self.fc1 = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.fc1(torch.sigmoid(self.fc0(x)))


model = Mlp().eval()
args = (torch.randn(3, 8),)
program = onnx.export(model, args, dynamo=True)
assert isinstance(program, onnx.ONNXProgram)
program.optimize()
(result,) = program(*args)
torch.testing.assert_close(result, model(*args), rtol=1e-4, atol=1e-5)
program.save("mlp.onnx")
assert program.exported_program is not None
assert [value.name for value in program.model.graph.inputs] == ["x"]
assert {tensor.name for tensor in program.model_proto.graph.initializer} >= {"fc0.bias", "fc1.bias"}
