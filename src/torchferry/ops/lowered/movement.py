"""Split, Pad, Resize, Slice: operators whose sizes wandered between attributes and inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute, constant_of

Values = Sequence[ir.Value] | None


def _split(draft: Draft, wanted: int) -> Values:
    node = draft.old
    value, given = [*node.inputs, None][:2]
    assert value is not None
    axis, count = attribute(node, "axis", 0), len(node.outputs)
    sizes = constant_of(given)
    if given is None and value.shape is not None and isinstance(size := value.shape[axis], int):
        each = -(-size // count)  # the last may be smaller
        sizes = np.array([each] * (count - 1) + [size - each * (count - 1)])
    if wanted < 13:
        if sizes is None:
            return None if given is not None else list(draft.many("Split", value, outputs=count, axis=axis, dtype=value.dtype))
        parts = [int(s) for s in sizes]
        return list(draft.many("Split", value, outputs=count, axis=axis, split=parts, dtype=value.dtype))
    listed = given if given is not None else None if sizes is None else draft.constant(sizes, "int64")
    return list(draft.many("Split", value, listed, outputs=count, axis=axis, dtype=value.dtype))


def _pad(draft: Draft, wanted: int) -> Values:
    node = draft.old
    value, given, fill, axes = [*node.inputs, None, None, None][:4]
    assert value is not None
    assert given is not None
    mode = attribute(node, "mode", "constant")
    if mode == "wrap" and wanted < 19:
        return None
    pads = given
    if axes is not None:
        spread = _spread(value, constant_of(given), constant_of(axes))
        if spread is None:
            return None
        pads = draft.constant(spread, "int64")
    if wanted >= 11:
        return [draft("Pad", value, pads, fill, mode=mode, dtype=value.dtype)]
    fixed, number = constant_of(pads), 0.0 if fill is None else constant_of(fill)
    if fixed is None or number is None:
        return None
    return [draft("Pad", value, pads=[int(p) for p in fixed], value=float(number), mode=mode, dtype=value.dtype)]


def _spread(value: ir.Value, pads: np.ndarray | None, axes: np.ndarray | None) -> np.ndarray | None:
    """Return pads for all axes from pads for some."""
    if pads is None or axes is None or value.shape is None:
        return None
    rank, some = len(value.shape), len(axes)
    whole = np.zeros(2 * rank, dtype=np.int64)
    for index, axis in enumerate(int(a) % rank for a in axes):
        whole[axis], whole[rank + axis] = pads[index], pads[some + index]
    return whole


def _resize(draft: Draft, wanted: int) -> Values:
    node = draft.old
    value, roi, scales, sizes = [*node.inputs, None, None, None][:4]
    assert value is not None
    late = {"antialias": 0, "keep_aspect_ratio_policy": "stretch"}
    if "axes" in node.attributes or any(attribute(node, k, v) != v for k, v in late.items()):
        return None
    if wanted < 13:  # all three were required
        roi = roi if roi is not None else draft.constant([], "float32")
        scales = scales if scales is not None else draft.constant([], "float32")
    kept = {k: a.value for k, a in node.attributes.items() if k not in late}
    return [draft("Resize", value, roi, scales, sizes, dtype=value.dtype, **kept)]


LOWERINGS = {"Split": (9, _split), "Pad": (9, _pad), "Resize": (11, _resize)}
