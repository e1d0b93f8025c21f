"""Shape, Squeeze, Unsqueeze, Trilu, CumSum: the plumbing of sizes and axes in older words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute, constant_of

Values = Sequence[ir.Value] | None
INT64 = ir.DataType.INT64


def _shape(draft: Draft, wanted: int) -> Values:
    """`start` and `end` came with 15."""
    whole = draft("Shape", draft.old.inputs[0], dtype=INT64)
    start, end = attribute(draft.old, "start", 0), attribute(draft.old, "end", 2**31 - 1)
    bounds = [draft.constant([bound], "int64") for bound in (start, end, 0)]
    return (
        [draft("Slice", whole, *bounds, dtype=INT64)]
        if wanted >= 10
        else [draft("Slice", whole, starts=[start], ends=[end], dtype=INT64)]
    )


def _axes_attribute(op_type: str) -> Callable[[Draft, int], Values]:
    def lowering(draft: Draft, wanted: int) -> Values:
        value, given = [*draft.old.inputs, None][:2]
        assert value is not None
        axes = constant_of(given)
        if given is not None and axes is None:
            return None
        listed = None if axes is None else [int(a) for a in axes.reshape(-1)]
        if listed is not None and wanted < 11:
            if value.shape is None:
                return None
            rank = len(value.shape) + (len(listed) if op_type == "Unsqueeze" else 0)
            listed = [a % rank for a in listed]
        return [draft(op_type, value, axes=listed, dtype=value.dtype)]

    return lowering


def _trilu(draft: Draft, wanted: int) -> Values:
    """Keep what is on or above (below) a diagonal: `column - row` compared with k, as numbers that every Where takes."""
    node = draft.old
    value = node.inputs[0]
    diagonal = node.inputs[1] if len(node.inputs) > 1 else None
    if value is None or value.dtype is None or value.shape is None:
        return None
    rank = len(value.shape)
    shape = draft("Shape", value, dtype=INT64)

    def line(axis: int) -> ir.Value:
        size = draft("Gather", shape, draft.constant(axis, "int64"), axis=0, dtype=INT64)
        return draft("Range", draft.constant(0, "int64"), size, draft.constant(1, "int64"), dtype=INT64)

    rows = draft("Reshape", line(rank - 2), draft.constant([-1, 1], "int64"), dtype=INT64)
    offset = draft("Sub", line(rank - 1), rows, dtype=INT64)
    k = draft.constant(0, "int64") if diagonal is None else diagonal
    upper = attribute(node, "upper", 1)
    outside = draft("Less" if upper else "Greater", offset, k, dtype=ir.DataType.BOOL)
    if value.dtype == ir.DataType.BOOL:
        return [draft("And", value, draft("Not", outside, dtype=ir.DataType.BOOL), dtype=ir.DataType.BOOL)]
    return [draft("Where", outside, draft.constant(0, value.dtype), value, dtype=value.dtype)]


LOWERINGS = {
    "Shape": (9, _shape),
    "Squeeze": (9, _axes_attribute("Squeeze")),
    "Unsqueeze": (9, _axes_attribute("Unsqueeze")),
    "Trilu": (11, _trilu),
}
