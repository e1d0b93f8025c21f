"""Logits of the last tokens alone, where the caller asks for these: of a prompt, only the last are most often wanted.

    hidden -> MatMul (the head) -> logits   becomes   hidden -> Slice (the last `logits_to_keep`) -> MatMul -> logits

`logits_to_keep` is an optional input, by transformers' own name; its default, 0, keeps all, so who does not know it need not.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from torchferry.ops.draft import Draft, constant_of, made, sizes

INPUT = "logits_to_keep"
LAST = np.iinfo(np.int64).max  # where a Slice ends that takes everything to the end
ONE_BY_ONE = ("Add", "Cast", "Div", "Mul", "Neg", "Sub", "Tanh")  # heads add a bias, scale what they give, or bound it


def last_logits(model: ir.Model) -> None:
    """Let the caller say for how many of the last tokens the first output is computed, in place, if a product ends in it."""
    ShapeInferencePass()(model)  # values inside a translation have no shapes yet
    graph = model.graph
    path = _path(graph.outputs[0])
    if not path:
        return
    tensor = ir.tensor(np.zeros(1, np.int64), name=INPUT)
    kept = ir.Value(name=INPUT, const_value=tensor, shape=tensor.shape, type=ir.TensorType(tensor.dtype))
    graph.inputs.append(kept)
    graph.register_initializer(kept)
    hidden, matrix = path[-1].inputs
    draft = Draft(path[-1])
    start, end, axis = draft("Neg", kept, dtype=tensor.dtype), draft.constant([LAST], np.int64), draft.constant([1], np.int64)
    few = draft("Slice", hidden, start, end, axis, dtype=path[-1].outputs[0].dtype)
    product = draft("MatMul", few, matrix, dtype=path[-1].outputs[0].dtype)
    draft.swap(product)
    for value in (product, *(node.outputs[0] for node in path[:-1])):
        if not value.is_graph_output():
            value.shape = None  # as long as the caller says; the output keeps the size that it has by default


def _path(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that a value comes from, back to a product of all tokens with one matrix; none where there is no such."""
    path: list[ir.Node] = []
    while (node := value.producer()) is not None and len(sizes(value) or ()) == 3 and _wanted(value) == 1:
        path.append(node)
        if made(value, "MatMul") is not None:
            return path if [len(sizes(factor) or ()) for factor in node.inputs] == [3, 2] else []
        moving = [i for i in node.inputs if i is not None and not _for_every_token(i)]
        if node.domain != "" or node.op_type not in ONE_BY_ONE or len(moving) != 1:
            return []
        value = moving[0]
    return []


def _wanted(value: ir.Value) -> int:
    """Return how many want a value: nodes, and the caller."""
    return len(value.uses()) + value.is_graph_output()


def _for_every_token(value: ir.Value) -> bool:
    """Whether a value is a constant that is the same for every token."""
    constant = constant_of(value)
    return constant is not None and (constant.ndim < 2 or constant.shape[-2] == 1)
