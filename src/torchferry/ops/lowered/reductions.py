"""Reduce operators, whose axes were an attribute before they were an input, and pools and norms built from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute, constant_of

AXES_BECAME_INPUT = {"ReduceSum": 13} | {
    f"Reduce{kind}": 18 for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
}


def mean(draft: Draft, value: ir.Value, axes: Sequence[int], wanted: int) -> ir.Value:
    """Add the mean over axes, which it keeps, in the form that the wanted opset has."""
    if wanted < AXES_BECAME_INPUT["ReduceMean"]:
        return draft("ReduceMean", value, axes=list(axes), keepdims=1, dtype=value.dtype)
    return draft("ReduceMean", value, draft.constant(axes, "int64"), keepdims=1, dtype=value.dtype)


def _reduce(op_type: str) -> Callable[[Draft, int], Sequence[ir.Value] | None]:
    def lowering(draft: Draft, wanted: int) -> Sequence[ir.Value] | None:
        node = draft.old
        value, given = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
        assert value is not None
        axes = constant_of(given)
        if given is not None and axes is None:
            return None
        if (axes is None or axes.size == 0) and attribute(node, "noop_with_empty_axes", 0):
            return [value]
        listed = None if axes is None or axes.size == 0 else [int(a) for a in axes.reshape(-1)]
        if listed is not None and wanted < 11:  # negative axes came with 11
            if value.shape is None:
                return None
            listed = [a % len(value.shape) for a in listed]
        return [draft(op_type, value, axes=listed, keepdims=attribute(node, "keepdims", 1), dtype=value.dtype)]

    return lowering


LOWERINGS = {op_type: (9, _reduce(op_type)) for op_type in AXES_BECAME_INPUT}
