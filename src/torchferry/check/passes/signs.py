"""Weights of the other sign: 128 away, and their zero point with them, so that every product is of the same numbers."""

from __future__ import annotations

import onnx

from torchferry.check.passes.weave import Weaver, forget_shapes
from torchferry.check.reading import graph
from torchferry.check.support import products
from torchferry.check.types import dtypes
from torchferry.edits.check import FlipWeights


def flip_weights(model: onnx.ModelProto, edit: FlipWeights) -> None:
    """Let the named products read their weights as the other 8-bit type.

    The stored weights stay as they are, for whoever else reads them: the runtime folds what is added here when it opens the file.
    """
    wanted, done = set(edit.nodes), list[onnx.NodeProto]()
    for item in list(products.found(model)):
        if item.place.label in wanted and not any(item.reader is n and item.weights == 0 for n in done):
            done.append(item.reader)
            _flip(model, item)
    forget_shapes(model)


def _flip(model: onnx.ModelProto, item: products.NodeProduct) -> None:
    node, to = item.reader, item.product.flipped().weights
    weaver = Weaver(model, f"{graph.label(node)}/{to}")
    node.input.extend([""] * (item.zero_point + 1 - len(node.input)))
    node.input[item.weights] = _moved(weaver, node.input[item.weights], to)
    node.input[item.zero_point] = _zero_point(weaver, node, item, to)
    weaver.before(item.place.graph, node)


def _moved(weaver: Weaver, value: str, to: str) -> str:
    wide = weaver.op("Cast", [value], to=dtypes.ENUM["int32"])
    away = weaver.op("Add", [wide, weaver.const(_away(to), "int32")])
    return weaver.op("Cast", [away], to=dtypes.ENUM[to])


def _zero_point(weaver: Weaver, node: onnx.NodeProto, item: products.NodeProduct, to: str) -> str:
    if (given := node.input[item.zero_point]) != "":
        return _moved(weaver, given, to)
    zero = weaver.const(_away(to), to)
    if node.op_type != "DequantizeLinear":
        return zero
    return weaver.op("Expand", [zero, weaver.op("Shape", [node.input[1]])])  # one for each scale


def _away(to: str) -> int:
    return 128 if to == "uint8" else -128
