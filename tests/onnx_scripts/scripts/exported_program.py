"""A program that torch.export made, converted as it is."""

import torch
import torch.onnx as onnx


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 3, 3)

    def forward(self, x):
        return self.conv(x).relu()


x = torch.randn(2, 2, 9)
program = torch.export.export(Model().eval(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
made = onnx.export(program, f="program.onnx")
other = torch.randn(5, 2, 9)
torch.testing.assert_close(made(other)[0], program.module()(other), rtol=1e-4, atol=1e-5)
