"""Attention as one node, ONNX's own `Attention` of opset 23, where the translation had to write it out; its cache goes with it.

    Concat(past, new) -> Transpose, Mul, MatMul, Where or Add (the mask), Softmax, Where (rows that see nothing), MatMul

A token costs the time of a model's weights and that of its nodes, most of which are these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass, ShapeInferencePass

from torchferry.ops.draft import Draft, attribute, constant_of, is_number, made, sizes
from torchferry.ops.lowered import raise_to

OPSET = 23  # the first that has the operator
SWAPPED = (0, 2, 1, 3)  # (batch, length, heads, width) to (batch, heads, length, width), and back


@dataclass(frozen=True, slots=True)
class Written:
    """An attention that is written out; query, key and value are (batch, heads, length, width)."""

    last: ir.Node  # the product with the values
    query: ir.Value
    key: ir.Value
    value: ir.Value
    mask: ir.Value | None
    zeros: ir.Node | None  # Where(the row sees anything: (batch, 1, length, 1), weights, 0)
    scale: float


def whole_attention(model: ir.Model) -> None:
    """Put an `Attention` in place of each attention that is written out, in place; where there is one, the opset becomes 23."""
    ShapeInferencePass()(model)  # values inside a translation have no shapes yet
    found = [written for node in model.graph if (written := read(node)) is not None]
    if not found or raise_to(model, OPSET):
        return
    squeezed: dict[ir.Value, ir.Value] = {}
    for written in found:
        _fuse(written, squeezed)
    model.opset_imports[""] = OPSET
    RemoveUnusedNodesPass()(model)


def read(last: ir.Node) -> Written | None:
    """Return the attention that ends in this product with the values; None where it is anything else."""
    if (last.domain, last.op_type) != ("", "MatMul"):
        return None
    weights = last.inputs[0]
    if (zeros := made(weights, "Where")) is not None:
        rows, weights, zero = zeros.inputs
        seen = sizes(rows) or ()
        if not is_number(zero, 0.0) or len(seen) != 4 or (seen[1], seen[3]) != (1, 1):
            return None
    softmax = made(weights, "Softmax")
    if softmax is None or attribute(softmax, "axis", -1) not in (-1, 3):
        return None
    scores, mask = softmax.inputs[0], None
    if (masked := made(scores, "Where")) is not None:
        mask, scores, lowest = masked.inputs
        if not is_number(lowest, -math.inf):
            return None
    elif (masked := made(scores, "Add")) is not None:
        scores, mask = masked.inputs
    if mask is not None and (len(spread := sizes(mask) or ()) != 4 or 1 in spread[2:]):
        return None  # one column for all is within ONNX, and beyond what onnxruntime spreads
    factors = _factors(made(scores, "MatMul"))
    if factors is None:
        return None
    query, key, scale = factors
    value = last.inputs[1]
    if value is None or any(len(sizes(v) or ()) != 4 or v.dtype != ir.DataType.FLOAT for v in (query, key, value)):
        return None
    return Written(last, query, key, value, mask, zeros, scale)


def _factors(product: ir.Node | None) -> tuple[ir.Value, ir.Value, float] | None:
    """Return query, key and scale of `(query * root) @ (key, transposed, * root)`."""
    scaled = [made(factor, "Mul") for factor in product.inputs] if product is not None else [None]
    if None in scaled:
        return None
    left, right = (node.inputs for node in scaled if node is not None)
    roots, turned = [constant_of(inputs[1]) for inputs in (left, right)], made(right[0], "Transpose")
    if any(r is None or r.size != 1 for r in roots) or turned is None or _order(turned) != (0, 1, 3, 2):
        return None
    first, second = (float(r.item()) for r in roots if r is not None)
    query, key = left[0], turned.inputs[0]
    return None if query is None or key is None else (query, key, first * second)


def _fuse(written: Written, squeezed: dict[ir.Value, ir.Value]) -> None:
    key, value = _shared(written.key), _shared(written.value)
    if _heads(key) != _heads(value):
        key, value = written.key, written.value
    caches = [cache for v in (key, value) if (cache := _cache(v)) is not None]
    pasts: tuple[ir.Value | None, ...] = ()
    if len(caches) == 2:
        pasts, (key, value) = zip(*(cache.inputs for cache in caches), strict=True)
    given, end, heads = [written.query, key, value], written.last, {}
    joined, joining = [_joined(v) for v in given], _joining(written.last)
    if joining is not None and None not in joined:  # heads side by side on both ends: the operator takes them so
        heads = {"q_num_heads": _heads(written.query), "kv_num_heads": _heads(key)}
        given, end = joined, joining
    draft = Draft(end)
    attended, *present = draft.many(
        "Attention", *given, written.mask, *pasts, outputs=1 + len(pasts), dtype=ir.DataType.FLOAT, scale=written.scale, **heads
    )
    if written.zeros is not None:
        rows, _, zero = written.zeros.inputs
        if heads and rows is not None:
            if rows not in squeezed:
                squeezed[rows] = draft("Squeeze", rows, draft.constant([1], ir.DataType.INT64), dtype=ir.DataType.BOOL)
            rows = squeezed[rows]
        attended = draft("Where", rows, attended, zero, dtype=ir.DataType.FLOAT)
    draft.swap(attended)
    for cache, grown in zip(caches if pasts else (), present, strict=True):
        grown.shape = cache.outputs[0].shape
        cache.outputs[0].replace_all_uses_with(grown, replace_graph_outputs=True)


def _shared(value: ir.Value) -> ir.Value:
    """Return keys or values before each of their heads was repeated for its group of query heads, which the operator does."""
    merged = made(value, "Reshape")
    wide = made(merged.inputs[0], "Expand") if merged is not None else None
    spread = made(wide.inputs[0], "Unsqueeze") if wide is not None else None
    few = spread.inputs[0] if spread is not None else None
    if wide is None or few is None or (before := sizes(few)) is None or (after := sizes(wide.outputs[0])) is None:
        return value
    if len(before) != 4 or len(after) != 5:
        return value
    (batch, heads, *rest), each = before, after[2]
    grouped = after == (batch, heads, each, *rest) and isinstance(heads, int) and isinstance(each, int)
    return few if grouped and sizes(value) == (batch, int(heads) * int(each), *rest) else value


def _cache(value: ir.Value | None) -> ir.Node | None:
    """Return the node that puts what is new behind the past, if nobody but this attention and the caller wants what it gives."""
    node = made(value, "Concat")
    fits = node is not None and len(node.inputs) == 2 and attribute(node, "axis") in (-2, 2)
    return node if fits and node is not None and len(node.outputs[0].uses()) == 1 else None


def _joined(value: ir.Value | None) -> ir.Value | None:
    """Return (batch, length, heads * width), of which a value is the heads apart."""
    turned = made(value, "Transpose")
    split = made(turned.inputs[0], "Reshape") if turned is not None and _order(turned) == SWAPPED else None
    return split.inputs[0] if split is not None and _same_rows(split.inputs[0], split.outputs[0]) else None


def _joining(last: ir.Node) -> ir.Node | None:
    """Return the node that puts the heads of what a node gives side by side, if that is all that is done with it."""
    for op_type in ("Transpose", "Reshape"):
        uses = last.outputs[0].uses()
        if len(uses) != 1 or last.outputs[0].is_graph_output() or made(uses[0].node.outputs[0], op_type) is None:
            return None
        apart, last = last, uses[0].node
    turned = _order(apart) == SWAPPED
    return last if turned and _same_rows(last.outputs[0], apart.outputs[0]) else None


def _same_rows(joined: ir.Value | None, apart: ir.Value) -> bool:
    """Whether one value is (batch, length, heads * width) and the other (batch, length, heads, width)."""
    whole, split = sizes(joined), sizes(apart)
    if whole is None or split is None or len(split) != 4 or len(whole) != 3 or whole[:2] != split[:2]:
        return False
    heads, width = split[2:]
    return isinstance(heads, int) and isinstance(width, int) and whole[2] == heads * width


def _order(transpose: ir.Node) -> tuple[int, ...]:
    return tuple(attribute(transpose, "perm", ()))


def _heads(value: ir.Value | None) -> int | None:
    found = sizes(value)
    return found[1] if found is not None and isinstance(found[1], int) else None
