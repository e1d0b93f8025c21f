"""Sigmoids whose small values count: onnxruntime's kernel gives 0 below -18, and log(0) is not log(1e-9).

Its results are near in absolute terms, which is enough for a probability. Where a logarithm is taken of them, where they are
divided by, or where they are the gate of numbers that may be large, they are computed as torch does it.
"""

from __future__ import annotations

import onnx_ir as ir

from torchferry.ops.draft import Draft

# what keeps a small number small, or may
_CARRIES = frozenset(
    [
        *("Add", "Sub", "Mul", "Div", "Clip", "Max", "Min", "Where", "Pow", "Cast", "Identity", "Sqrt", "CumSum"),
        *("Reshape", "Transpose", "Slice", "Concat", "Gather", "GatherElements", "GatherND", "Squeeze", "Unsqueeze", "Expand"),
        *("Split", "Flatten", "Tile", "ReduceSum", "ReduceMean", "ReduceProd"),
    ]
)
_MAGNIFIES = frozenset(["Log", "Reciprocal"])
_BOUNDED = frozenset(["Tanh", "Sigmoid", "Softmax", "Clip", "HardSigmoid", "Erf", "Sin", "Cos"])


def exact_tails(model: ir.Model) -> None:
    """Write `1 / (1 + exp(-x))` for every sigmoid whose small values count, in place."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        dtype = node.outputs[0].dtype
        if (node.domain, node.op_type) == ("", "Sigmoid") and dtype is not None and (_gates(node) or _counts(node.outputs[0])):
            draft = Draft(node)
            power = draft("Exp", draft("Neg", node.inputs[0], dtype=dtype), dtype=dtype)
            draft.swap(draft("Reciprocal", draft("Add", power, draft.constant(1, dtype), dtype=dtype), dtype=dtype))


def _gates(node: ir.Node) -> bool:
    """Return whether a sigmoid is multiplied with numbers that may be large; `x * sigmoid(x)` is small where the sigmoid is."""
    products = [use.node for use in node.outputs[0].uses() if use.node.op_type == "Mul"]
    factors = [value for product in products for value in product.inputs if value is not None and value is not node.outputs[0]]
    return any(f is not node.inputs[0] and ((made := f.producer()) is None or made.op_type not in _BOUNDED) for f in factors)


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
