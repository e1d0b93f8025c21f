"""An operator that ONNX has, translated in another way."""

import torch
import torch.onnx as onnx
from onnxscript import opset18 as op


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)


def silu(self):
    return op.Div(self, op.Add(op.Exp(op.Neg(self)), op.Constant(value_float=1.0)))


x = torch.randn(2, 3)
program = onnx.export(Model(), (x,), dynamo=True, custom_translation_table={torch.ops.aten.silu.default: silu})
assert "Sigmoid" not in {node.op_type for node in program.model.graph}
torch.testing.assert_close(program(x)[0], Model()(x), rtol=1e-4, atol=1e-5)
