"""A model that cannot be exported, and a script that goes on."""

import torch
from torch.onnx import OnnxExporterError, export, is_in_onnx_export


class Impossible(torch.nn.Module):
    def forward(self, x):
        return x * len(open("/no/such/file").read())


class Possible(torch.nn.Module):
    def forward(self, x):
        return x + 1


x = torch.randn(2, 3)
failed = False
try:
    export(Impossible(), (x,), "impossible.onnx")
except OnnxExporterError:
    failed = True
assert failed
assert not is_in_onnx_export()
program = export(Possible(), (x,), "possible.onnx", opset_version=11)
assert program.model.opset_imports[""] == 11
