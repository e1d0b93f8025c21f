"""Products with weights as pointwise convolutions, made while a graph is opened: the same numbers, read faster.

    x @ W + b   ->   Unsqueeze, Transpose, Conv (W as a kernel of size 1), Transpose, Squeeze

onnxruntime lays the weights of a convolution out in blocks, and reads them as fast for one token as for many; those of a MatMul
are fast for one token as they lie, and fast for many when they are packed. It folds the transposed weights itself, so no weight
passes through here, and the file stays as it was verified: the texts that an export is verified by are written this way.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass, ShapeInferencePass

from torchferry.files import size_on_disk
from torchferry.foreign import onnxruntime as ort
from torchferry.foreign import posix
from torchferry.ops.draft import Draft, attribute, transposed

LEAST = 2**18  # weights of a product: with fewer, the nodes around a convolution take as long as it saves
BLOCK = 16  # channels that are laid out together, at most
SHARE = 4  # weights are held up to three times over while they are laid out: they may be this part of the memory
# what is computed number by number keeps the axis that a convolution adds, as norms over the last axis do
ONE_BY_ONE = (
    "Add", "Div", "Erf", "Exp", "Gelu", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh",
)  # fmt: skip
NORMS = ("LayerNormalization", "RMSNormalization")


def by_convolutions(path: Path) -> bytes | None:
    """Return the graph of a file with convolutions for its products, or None where that would not be faster."""
    if not ort.lays_out_in_blocks() or not _room_for(path):
        return None
    model = ir.load(path)
    if not put_convolutions(model):
        return None
    return bytes(ir.to_proto(model).SerializeToString())


def put_convolutions(model: ir.Model, least: int = LEAST) -> bool:
    """Put convolutions in place of products with at least so many weights, in place; return whether there was one."""
    ShapeInferencePass()(model)
    wide: dict[ir.Value, ir.Value] = {}  # values that there are with an axis of size 1 in front as well
    for node in list(model.graph):
        if node.graph is None:  # a bias that went into a convolution
            continue
        if (kernel := _kernel(node, least)) is not None:
            _convolve(node, kernel, wide)
        elif any(i in wide for i in node.inputs if i is not None) and _keeps_the_axis(node):
            _carry(node, wide)
    RemoveUnusedNodesPass()(model)
    return bool(wide)


def give_back() -> None:
    """Let the C library hand memory back that weights lay in while they were laid out; it keeps it for later otherwise."""
    posix.give_back_memory()


def _room_for(path: Path) -> bool:
    memory = posix.physical_memory()
    return memory is not None and size_on_disk(path) * SHARE <= memory


def _kernel(node: ir.Node, least: int) -> ir.Value | None:
    """Return the weights of a product of three axes with a constant matrix, if it has enough of them in whole blocks."""
    if (node.domain, node.op_type) != ("", "MatMul") or _rank(node.inputs[0]) != 3:
        return None
    value = node.inputs[1]
    turned = transposed(value)
    matrix = value if turned is None else turned
    tensor = matrix.const_value if matrix is not None and not matrix.is_graph_input() else None
    if tensor is None or len(tensor.shape) != 2 or tensor.dtype != ir.DataType.FLOAT or tensor.size < least:
        return None
    channels = tensor.shape[1 if turned is not None else 0]
    return value if int(channels) % BLOCK == 0 else None


def _convolve(product: ir.Node, kernel: ir.Value, wide: dict[ir.Value, ir.Value]) -> None:
    added = _bias(product)
    draft = Draft(added[0] if added is not None else product)
    value = product.inputs[0]
    assert value is not None
    front, window = draft.constant([0], np.int64), draft.constant([2, 3], np.int64)
    rows = wide.get(value) or draft("Unsqueeze", value, front)
    channels = draft("Transpose", rows, perm=[0, 3, 1, 2])
    weights = draft("Unsqueeze", transposed(kernel) or draft("Transpose", kernel, perm=[1, 0]), window)
    given = draft("Conv", channels, weights, added[1] if added is not None else None, kernel_shape=[1, 1])
    _widened(draft, draft("Transpose", given, perm=[0, 2, 3, 1]), front, wide)


def _carry(node: ir.Node, wide: dict[ir.Value, ir.Value]) -> None:
    """Put the values with an axis in front where a node takes the others."""
    draft = Draft(node)
    inputs = [wide.get(i, i) if i is not None else None for i in node.inputs]
    kept = {name: given.value for name, given in node.attributes.items() if name != "axis"}  # the last is the default
    _widened(draft, draft(node.op_type, *inputs, **kept), draft.constant([0], np.int64), wide)


def _widened(draft: Draft, given: ir.Value, front: ir.Value, wide: dict[ir.Value, ir.Value]) -> None:
    narrow = draft("Squeeze", given, front)
    narrow.shape, narrow.dtype = draft.old.outputs[0].shape, draft.old.outputs[0].dtype
    draft.swap(narrow)
    wide[narrow] = given


def _bias(product: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    """Return the node that adds a constant to each column of a product, and the constant."""
    uses = list(product.outputs[0].uses())
    if len(uses) != 1 or product.outputs[0].is_graph_output() or (uses[0].node.domain, uses[0].node.op_type) != ("", "Add"):
        return None
    bias = uses[0].node.inputs[1 - uses[0].idx]
    if bias is None or bias.is_graph_input() or bias.const_value is None or _rank(bias) != 1 or bias.const_value.size == 1:
        return None
    return uses[0].node, bias


def _keeps_the_axis(node: ir.Node) -> bool:
    """Whether a node gives the same numbers with an axis of size 1 in front of what it takes."""
    if node.domain != "" or len(node.outputs) != 1:
        return False
    last = attribute(node, "axis", -1) in (-1, 2)
    return _rank(node.outputs[0]) == 3 and (node.op_type in ONE_BY_ONE or (node.op_type in NORMS and last))


def _rank(value: ir.Value | None) -> int | None:
    return len(value.shape) if value is not None and value.shape is not None else None
