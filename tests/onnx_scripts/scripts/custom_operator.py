"""An operator of one's own, with what it is in ONNX given along."""

import onnxscript
import torch
import torch.onnx as onnx
from onnxscript import opset18 as op


@torch.library.custom_op("scripts::clipped_cube", mutates_args=())
def clipped_cube(x: torch.Tensor, top: float) -> torch.Tensor:
    return (x**3).clamp(max=top)


@clipped_cube.register_fake
def _(x, top):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.scripts.clipped_cube(x, 2.0) + 1


def cube_in_onnx(x: onnxscript.FLOAT, top: float):
    return op.Min(op.Mul(op.Mul(x, x), x), op.Constant(value_float=top))


x = torch.randn(2, 3)
table = {torch.ops.scripts.clipped_cube.default: cube_in_onnx}
program = onnx.export(Model(), (x,), dynamo=True, custom_translation_table=table)
(got,) = program(x)
torch.testing.assert_close(got, Model()(x), rtol=1e-4, atol=1e-5)
assert "Min" in {node.op_type for node in program.model.graph}
