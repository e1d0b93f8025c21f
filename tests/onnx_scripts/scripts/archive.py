"""A TorchScript archive from the disk."""

import torch
import torch.onnx as onnx

model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)).eval()
torch.jit.script(model).save("archive.pt")
x = torch.randn(4, 3)
program = onnx.export(torch.jit.load("archive.pt"), (x,), "archive.onnx", dynamic_axes={"x": [0]}, input_names=["x"])
torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)
