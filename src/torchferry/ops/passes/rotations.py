"""Rotary positions as one node, ONNX's own `RotaryEmbedding` of opset 23, where the rotation is written out.

    x * cos + Concat(-second half of x, first half of x) * sin

The angles of the second half are those of the first; the operator takes them once.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass, ShapeInferencePass

from torchferry.ops.draft import Draft, attribute, constant_of, is_number, made, sizes
from torchferry.ops.lowered import raise_to

OPSET = 23  # the first that has the operator
Rotation = tuple[ir.Value, ir.Value, ir.Value]  # of (batch, heads, length, width) by cosines and sines of (batch, length, width)


def whole_rotations(model: ir.Model) -> None:
    """Put a `RotaryEmbedding` in place of each rotation that is written out, in place; where one is, the opset becomes 23."""
    ShapeInferencePass()(model)  # values inside a translation have no shapes yet
    found = [(node, rotation) for node in model.graph if (rotation := _read(node)) is not None]
    if not found or raise_to(model, OPSET):
        return
    halves: dict[ir.Value, ir.Value] = {}
    for node, (value, *angles) in found:
        draft = Draft(node)
        for angle in angles:
            if angle not in halves:
                halves[angle] = _half(draft, angle)
        draft.swap(draft("RotaryEmbedding", value, *(halves[angle] for angle in angles), dtype=value.dtype))
    model.opset_imports[""] = OPSET
    RemoveUnusedNodesPass()(model)


def _half(draft: Draft, angle: ir.Value) -> ir.Value:
    width = (sizes(angle) or ())[-1]
    start, end, axis = (draft.constant([number], ir.DataType.INT64) for number in (0, int(width) // 2, 2))
    return draft("Slice", angle, start, end, axis, dtype=angle.dtype)


def _read(node: ir.Node) -> Rotation | None:
    """Return what is rotated, and by which angles, if a node is the sum that ends a rotation."""
    if (node.domain, node.op_type) != ("", "Add"):
        return None
    for straight, crossed in (node.inputs, reversed(node.inputs)):
        for value, cosine in _factors(straight):
            for turned, sine in _factors(crossed):
                if _is_turned(turned, value):
                    return _rotation(value, _angle(cosine, "Cos"), _angle(sine, "Sin"))
    return None


def _rotation(value: ir.Value | None, cosine: ir.Value | None, sine: ir.Value | None) -> Rotation | None:
    """Return a rotation whose sizes are those that the operator takes: it spreads neither batch nor length."""
    whole = sizes(value) or ()
    if value is None or cosine is None or sine is None or len(whole) != 4 or value.dtype != ir.DataType.FLOAT:
        return None
    batch, _, length, width = whole
    fits = all(sizes(angle) == (batch, length, width) for angle in (cosine, sine)) and isinstance(width, int)
    return (value, cosine, sine) if fits else None


def _factors(value: ir.Value | None) -> tuple[tuple[ir.Value | None, ...], ...]:
    """Return the two factors of a product, in both orders."""
    product = made(value, "Mul")
    return (tuple(product.inputs), tuple(reversed(product.inputs))) if product is not None else ()


def _is_turned(turned: ir.Value | None, value: ir.Value | None) -> bool:
    """Whether one value is the other's second half, negated, and then its first."""
    joined = made(turned, "Concat")
    if joined is None or len(joined.inputs) != 2 or attribute(joined, "axis") not in (-1, 3) or not (whole := sizes(value)):
        return False
    negated, width = made(joined.inputs[0], "Neg"), whole[-1]
    if negated is None or not isinstance(width, int):
        return False
    return _is_part(joined.inputs[1], value, 0, width // 2) and _is_part(negated.inputs[0], value, width // 2, width)


def _is_part(part: ir.Value | None, value: ir.Value | None, start: int, end: int) -> bool:
    """Whether a value is a range of another's last axis."""
    cut = made(part, "Slice")
    if cut is None or cut.inputs[0] is not value or len(cut.inputs) < 4:
        return False
    if len(cut.inputs) == 5 and not is_number(cut.inputs[4], 1):
        return False
    stop = constant_of(cut.inputs[2])
    last = is_number(cut.inputs[3], 3) or is_number(cut.inputs[3], -1)
    return last and is_number(cut.inputs[1], start) and stop is not None and stop.size == 1 and min(int(stop.item()), end) == end


def _angle(value: ir.Value | None, function: str) -> ir.Value | None:
    """Return (batch, length, width) of which a value is the form for all heads, if its two halves are the same."""
    spread = made(value, "Unsqueeze")
    if spread is None or not is_number(spread.inputs[1], 1):
        return None
    angle = inner = spread.inputs[0]
    while (scaled := made(inner, "Mul")) is not None and constant_of(scaled.inputs[1]) is not None:
        inner = scaled.inputs[0] if (sizes(scaled.inputs[1]) or ()) in ((), (1,)) else None
    wave = made(inner, function)
    twice = made(wave.inputs[0], "Concat") if wave is not None else None
    same = (
        twice is not None
        and len(twice.inputs) == 2
        and twice.inputs[0] is twice.inputs[1]
        and attribute(twice, "axis") in (-1, 2)
    )
    return angle if same else None
