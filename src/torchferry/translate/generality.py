"""Where translation lost generality: sizes of outputs that the program has as expressions and the graph as plain numbers.

The captured program declares each output's sizes over the dims of the inputs. What the graph makes of them is computed anew by
onnx's shape inference, from the inputs alone. Where that gives one number for a size that moves, decomposition or translation
fixed it. It is a hypothesis: the verification is told of it, and tries a size at which the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

from torchferry.foreign.torch_shapes import expression
from torchferry.guards import value_of
from torchferry.records import Bound, Location, Signature
from torchferry.records.findings import OutputSizeFixed
from torchferry.translate import names

POINTS = 6  # sizes of each dim at which an expression is compared with a number


def lost(path: Path, program: Any, bound: Bound, places: Mapping[str, Location]) -> Iterator[OutputSizeFixed]:
    """Yield a finding for each size of an output that the graph fixes and the program does not."""
    model = onnx.load(str(path), load_external_data=False)
    signature = bound.signature
    declared = dict(zip(bound.outputs, _in_program(program, signature), strict=False))
    inner = {v.name: _sizes(v) for v in model.graph.value_info}
    inferred = _inferred(model)
    for name, sizes in declared.items():
        for axis, (says, fixed) in enumerate(zip(sizes, inferred.get(name, ()), strict=False)):
            if isinstance(says, str) and isinstance(fixed, int) and _differ(says, fixed, signature):
                where = _first(model, inner, inferred, signature, places, name)
                yield OutputSizeFixed(name, axis, says, fixed, location=where)


def _in_program(program: Any, signature: Signature) -> Iterator[list[int | str | None]]:
    """Yield the sizes of each output as the captured program has them, over the user's dims."""
    words = names.dim_names(program, signature)
    nodes = {n.name: n for n in program.graph.nodes}
    for name in program.graph_signature.user_outputs:
        shape = getattr(nodes[name].meta.get("val"), "shape", ()) if name in nodes else ()
        texts = [size if isinstance(size, int) else str(expression(size)) for size in shape]
        yield [t if isinstance(t, int) else names.WORD.sub(lambda m: words.get(m[0], m[0]), t) for t in texts]


def _inferred(model: onnx.ModelProto) -> dict[str, list[int | str | None]]:
    """Return the sizes of all values as the graph itself gives them, without what it declares of them."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.tensor_type.ClearField("shape")
    try:
        found = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except Exception:  # onnx's inference stumbles over some valid graphs; then nothing is known
        return {}
    return {v.name: _sizes(v) for v in (*found.graph.value_info, *found.graph.output)}


def _sizes(value: onnx.ValueInfoProto) -> list[int | str | None]:
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]


def _differ(says: int | str | None, fixed: int | str | None, signature: Signature) -> bool:
    """Return whether there are sizes of the dims at which an expression is not the number that the graph has for it."""
    if not isinstance(says, str) or not isinstance(fixed, int):
        return False
    for k in range(POINTS):
        sizes: dict[str, int] = {}
        for dim in signature.dims:
            size = -(-(max(dim.low, 1) + k * (1 + len(sizes))) // dim.multiple_of) * dim.multiple_of
            sizes[dim.name] = size if dim.high is None else min(size, dim.high)
        number = value_of(says, sizes)
        if number is not None and number != fixed:
            return True
    return False


def _first(
    model: onnx.ModelProto,
    inner: Mapping[str, list[int | str | None]],
    inferred: Mapping[str, list[int | str | None]],
    signature: Signature,
    places: Mapping[str, Location],
    output: str,
) -> Location | None:
    """Return the place of the first node whose result lost a size, or of the one that makes the output."""
    maker = None
    for node in model.graph.node:
        for name in node.output:
            pairs = zip(inner.get(name, ()), inferred.get(name, ()), strict=False)
            if any(_differ(says, fixed, signature) for says, fixed in pairs):
                return places.get(node.name)
            maker = node.name if name == output else maker
    return places.get(maker or "")
