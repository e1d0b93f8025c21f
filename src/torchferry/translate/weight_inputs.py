"""A model's weights as inputs of its graph: who feeds one runs the file with it, who does not with the one that the model had."""

from __future__ import annotations

import onnx_ir as ir

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
OF_THE_MODEL = ("PARAMETER", "BUFFER")


def weights_as_inputs(model: ir.Model) -> None:
    """Declare parameters and buffers as inputs behind the others, in place; constants of the graph stay its own."""
    inputs = set(model.graph.inputs)
    model.graph.inputs.extend(w for w in weights(model) if w not in inputs)


def weights(model: ir.Model) -> list[ir.Value]:
    """Return the values in the graph that are parameters and buffers of the model; those folded into others are none."""
    found = [v for v in model.graph.initializers.values() if v.metadata_props.get(KIND) in OF_THE_MODEL]
    return [value for value in found if value.uses() or value.is_graph_output()]
