"""Moving sizes in the words of torch.export."""

import onnx as format
import torch
import torch.onnx as onnx


class Pairs(torch.nn.Module):
    def forward(self, a, b):
        return a @ b.transpose(0, 1)


batch = torch.export.Dim("batch", min=1, max=64)
shapes = {"a": {0: batch}, "b": {0: "others"}}
program = onnx.export(Pairs(), (torch.randn(3, 4), torch.randn(5, 4)), "pairs.onnx", dynamic_shapes=shapes, dynamo=True)
inputs = format.load("pairs.onnx").graph.input
assert [d.dim_param or d.dim_value for i in inputs for d in i.type.tensor_type.shape.dim] == ["batch", 4, "others", 4]
assert program(torch.randn(7, 4), torch.randn(2, 4))[0].shape == (7, 2)
