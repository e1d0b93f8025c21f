"""Models of a few numbers with their weights beside them, made without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from torchferry.files import data_name

WORTH = 256


def write(path: Path, value: float, location: str | None = None) -> Path:
    """Write a model that adds `value` to its input, the weights beside it; return its path."""
    weights = np.full(WORTH, value, np.float32)
    graph = onnx.parser.parse_graph(f"g (float[{WORTH}] x) => (float[{WORTH}] y) {{ y = Add(x, w) }}")
    tensor = onnx.numpy_helper.from_array(weights, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in {"location": location or data_name(path.name), "offset": "0", "length": str(weights.nbytes)}.items():
        tensor.external_data.add(key=key, value=text)
    graph.initializer.append(tensor)
    model = onnx.helper.make_model(
        graph, producer_name=str(value), opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8
    )
    path.write_bytes(model.SerializeToString())
    (path.parent / (location or data_name(path.name))).write_bytes(weights.tobytes())
    return path


def read(path: Path) -> float:
    """Return what a model adds, after a look that the graph and the weights were written together."""
    model = onnx.load(str(path))
    (weights,) = (onnx.numpy_helper.to_array(t) for t in model.graph.initializer)
    assert set(weights.tolist()) == {float(model.producer_name)}, "the graph has the weights of another"
    return float(model.producer_name)
