"""A Scan that goes round no times: onnxruntime refuses one over nothing, where the model's loop simply does not begin.

A step of zeros is put behind the others where there are none. What comes of it is dropped: the carried values are those
that the loop began with, and the stacked ones have no rows.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute

I64 = ir.DataType.INT64


def let_scans_be_empty(model: ir.Model, some: Collection[str]) -> None:
    """Guard each Scan whose length may be zero, in place; `some` are the sizes, as the graph names them, that never are."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Scan" and _may_be_empty(node, some):
            _guard(node)


def _may_be_empty(node: ir.Node, some: Collection[str]) -> bool:
    """Return whether its length may be zero; only Scans over first axes are known here, which is what torch's scan becomes."""
    moved = any(attribute(node, f"scan_{side}_axes") for side in ("input", "output"))
    shape = _scanned(node)[0].shape
    length = shape[0] if shape is not None and len(shape) else None
    never = length >= 1 if isinstance(length, int) else getattr(length, "value", None) in some
    return not moved and not never


def _scanned(node: ir.Node) -> list[ir.Value]:
    given = [value for value in node.inputs if value is not None]
    return given[-attribute(node, "num_scan_inputs") :]


def _guard(node: ir.Node) -> None:
    draft, scanned = Draft(node), _scanned(node)
    first = [value for value in node.inputs if value is not None][: -len(scanned)]
    zero, one = draft.constant([0], I64), draft.constant([1], I64)
    length = draft("Shape", scanned[0], start=0, end=1, dtype=I64)
    some = draft("Min", length, one, dtype=I64)  # 0 where there is no step, else 1
    missing = draft("Sub", one, some, dtype=I64)
    pads = draft("Concat", zero, missing, axis=0, dtype=I64)
    steps = [draft("Pad", value, pads, None, zero, dtype=value.dtype) for value in scanned]
    made = draft.many("Scan", *first, *steps, outputs=len(node.outputs), **node.attributes)
    results = []
    for index, (old, new) in enumerate(zip(node.outputs, made, strict=True)):
        new.dtype = old.dtype
        if index < len(first):
            both = [draft("Unsqueeze", value, zero, dtype=old.dtype) for value in (first[index], new)]
            either = draft("Concat", *both, axis=0, dtype=old.dtype)
            results.append(draft("Gather", either, draft("Squeeze", some, zero, dtype=I64), axis=0, dtype=old.dtype))
        else:
            results.append(draft("Slice", new, zero, length, zero, dtype=old.dtype))
    draft.swap(*results)
