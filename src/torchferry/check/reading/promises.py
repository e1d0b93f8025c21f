"""What was promised of the file, and what it declares: names, element types, and which sizes move."""

from __future__ import annotations

import onnx

from torchferry.check.types import dtypes
from torchferry.records import Bound, TensorSpec


def broken(model: onnx.ModelProto, bound: Bound | None) -> list[str]:
    """Return each promise of the signature that the file does not keep, in words."""
    if bound is None:
        return []
    stored = {t.name for t in model.graph.initializer}
    inputs = {i.name: i for i in model.graph.input if i.name not in stored}
    outputs = [o.name for o in model.graph.output]
    words = [f"the input `{spec.name}` is missing" for spec in bound.signature.inputs if spec.name not in inputs]
    words += [w for spec in bound.signature.inputs if spec.name in inputs for w in _input(spec, inputs[spec.name])]
    if outputs != list(bound.outputs):
        words.append(f"the outputs are {outputs}, promised were {list(bound.outputs)}")
    return words


def _input(spec: TensorSpec, value: onnx.ValueInfoProto) -> list[str]:
    kind = value.type.tensor_type
    dtype = dtypes.of_text(f"tensor({dtypes.word(kind.elem_type)})")
    if spec.dtype.startswith("complex"):  # goes into the file as pairs of real numbers
        return []
    words = []
    if dtype is not None and dtypes.friendly(dtype) not in (spec.dtype, "str"):
        words.append(f"the input `{spec.name}` is {dtypes.friendly(dtype)}, promised was {spec.dtype}")
    dims = kind.shape.dim
    if len(dims) != len(spec.shape):
        return [*words, f"the input `{spec.name}` has rank {len(dims)}, promised was {len(spec.shape)}"]
    for axis, (dim, size) in enumerate(zip(dims, spec.shape, strict=True)):
        if isinstance(size, str) and dim.HasField("dim_value"):
            words.append(f"dim {axis} of `{spec.name}` is fixed to {dim.dim_value}, promised was `{size}`")
    return words
