"""A Pad that stays a Pad: onnxruntime's Pad_Fusion takes it into a MaxPool, which pads with the lowest number instead."""

from __future__ import annotations

import onnx_ir as ir

from torchferry.ops.draft import Draft, attribute


def guard_pad_before_maxpool(model: ir.Model) -> None:
    """Put `Max(x, x)` between a constant Pad and the MaxPool behind it: nothing to compute, and not to be fused."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        given = node.inputs[0] if node.inputs else None
        pad = given.producer() if given is not None else None
        if (
            node.op_type == "MaxPool"
            and pad is not None
            and pad.op_type == "Pad"
            and attribute(pad, "mode", "constant") == "constant"
        ):
            draft = Draft(node)
            apart = draft("Max", given, given, dtype=given.dtype if given is not None else None)
            draft.swap(*draft.many("MaxPool", apart, outputs=len(node.outputs), **node.attributes))
