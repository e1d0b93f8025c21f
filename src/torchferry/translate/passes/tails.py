"""Sigmoids whose small values count: onnxruntime's kernel gives 0 below -18, and log(0) is not log(1e-9).

Its results are near in absolute terms, which is enough for a gate or a probability. Where a logarithm is taken of them, or
they are divided by, they are computed as torch does it.
"""

from __future__ import annotations

import onnx_ir as ir

from torchferry.translate.draft import Draft

# what keeps a small number small, or may
_CARRIES = frozenset(
    [
        *("Add", "Sub", "Mul", "Div", "Clip", "Max", "Min", "Where", "Pow", "Cast", "Identity", "Sqrt", "CumSum"),
        *("Reshape", "Transpose", "Slice", "Concat", "Gather", "GatherElements", "GatherND", "Squeeze", "Unsqueeze", "Expand"),
        *("Split", "Flatten", "Tile", "ReduceSum", "ReduceMean", "ReduceProd"),
    ]
)
_MAGNIFIES = frozenset(["Log", "Reciprocal"])


def exact_tails(model: ir.Model) -> None:
    """Write `1 / (1 + exp(-x))` for every sigmoid whose small values count, in place."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        dtype = node.outputs[0].dtype
        if (node.domain, node.op_type) == ("", "Sigmoid") and dtype is not None and _counts(node.outputs[0]):
            draft = Draft(node)
            power = draft("Exp", draft("Neg", node.inputs[0], dtype=dtype), dtype=dtype)
            draft.swap(draft("Reciprocal", draft("Add", power, draft.constant(1, dtype), dtype=dtype), dtype=dtype))


def _counts(value: ir.Value) -> bool:
    """Return whether a value, or what is made of it number by number, comes into a logarithm or under a fraction's line."""
    seen, waiting = {value}, [value]
    while waiting:
        for use in waiting.pop().uses():
            node = use.node
            if node.op_type in _MAGNIFIES or (node.op_type == "Div" and use.idx == 1):
                return True
            if node.op_type in _CARRIES:
                waiting += [out for out in node.outputs if out not in seen]
                seen.update(node.outputs)
    return False
