"""A module that says itself how it is exported."""

import torch
import torch.onnx as onnx


class Exportable(onnx.ExportableModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)

    def example_arguments(self):
        return (torch.randn(2, 3),), None

    def input_names(self):
        return ("features",)

    def output_names(self):
        return ("scores",)

    def dynamic_shapes(self):
        return ({0: "batch"},)


program = onnx.export(Exportable().eval())
assert [value.name for value in program.model.graph.inputs] == ["features"]
assert [value.name for value in program.model.graph.outputs] == ["scores"]
assert str(program.model.graph.inputs[0].shape[0]) == "batch"
