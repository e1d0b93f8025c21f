"""Products of 8-bit integers in a file: of which kind they are, and which of them come out wrong on this processor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from torchferry.check.reading import external, graph
from torchferry.check.types.type_inference import infer
from torchferry.records import Location
from torchferry.records.findings import ProductCutOff
from torchferry.saturation.asked import answer, exact, has_kernel
from torchferry.saturation.product import BLOCKS, FUSED, INPUTS, QDQ, Product, expected

EIGHT_BITS = ("int8", "uint8")
HARMLESS = {"int8": (-64, 64), "uint8": (0, 127)}  # no pair of such weights takes 8-bit activations beyond 16 bits
# operators that multiply inside: what their products are like, and where weights and their zero points stand among the inputs
INSIDE: dict[tuple[str, str], tuple[tuple[str, str], tuple[tuple[int, int], ...]]] = {
    ("com.microsoft", "QAttention"): (("", "MatMulInteger"), ((1, 7),)),
    ("com.microsoft", "DynamicQuantizeLSTM"): (("com.microsoft", "DynamicQuantizeMatMul"), ((1, 9), (2, 11))),
}
NAMES = frozenset({op for _, op in (*INPUTS, *INSIDE, BLOCKS)} | {"DequantizeLinear"})  # a file with such products has one
VIEWS = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity")


@dataclass(frozen=True, slots=True)
class NodeProduct:
    """A product in a file: its node, its kind, and where its weights and their zero point are read."""

    place: graph.NodePlace
    product: Product
    reader: onnx.NodeProto  # the node itself, or the DequantizeLinear before it
    weights: int  # which of the reader's inputs
    zero_point: int  # likewise


def found(model: onnx.ModelProto) -> Iterator[NodeProduct]:
    """Yield the products of 8-bit integers of a model's graphs."""
    if not any(place.node.op_type in NAMES for place in graph.places(model)):
        return
    types = infer(model).of
    for part in graph.graphs(model):
        makers = graph.makers(part)
        for node in part.node:
            yield from _of(graph.NodePlace(node, part), types, makers)


def _of(place: graph.NodePlace, types: Mapping[str, str], makers: Mapping[str, onnx.NodeProto]) -> Iterator[NodeProduct]:
    node = place.node
    key = ("" if node.domain == "ai.onnx" else node.domain, node.op_type)
    if key in INPUTS:
        roles = INPUTS[key].split()
        yield from _kind(place, types, key, (roles.index("b"), roles.index("zb")), "x" in roles)
    for weights in INSIDE[key][1] if key in INSIDE else ():
        yield from _kind(place, types, INSIDE[key][0], weights, key[1] == "DynamicQuantizeLSTM")
    if key == BLOCKS:
        settings = graph.attributes(node)
        if settings.get("bits") == 8 and settings.get("accuracy_level") == 4:  # others are computed in floats
            yield NodeProduct(place, Product(*BLOCKS, "int8", "uint8", int(settings["block_size"])), node, 1, 3)
    if key[0] == "" and key[1] in FUSED:
        sides = [_behind_views(makers.get(name), makers) for name in node.input[:2]]
        read = [n for n in sides if n is not None and n.op_type == "DequantizeLinear"]
        kinds = [types.get(n.input[0], "") for n in read]
        if len(read) == 2 and set(kinds) <= set(EIGHT_BITS):
            yield NodeProduct(place, Product(QDQ, key[1], kinds[0], kinds[1]), read[1], 0, 2)


def _behind_views(node: onnx.NodeProto | None, makers: Mapping[str, onnx.NodeProto]) -> onnx.NodeProto | None:
    """Return the first node before one that only looks at numbers in another way: onnxruntime moves these out of between."""
    while node is not None and node.op_type in VIEWS and node.domain in ("", "ai.onnx"):
        node = makers.get(node.input[0])
    return node


def _kind(
    place: graph.NodePlace, types: Mapping[str, str], key: tuple[str, str], weights: tuple[int, int], rounds: bool
) -> Iterator[NodeProduct]:
    """Yield a product of an operator, where both its types are known."""
    read = place.node.input[weights[0]] if len(place.node.input) > weights[0] else ""
    kinds = "uint8" if rounds else types.get(place.node.input[0], ""), types.get(read, "")
    if set(kinds) <= set(EIGHT_BITS):
        yield NodeProduct(place, Product(*key, *kinds), place.node, *weights)


def cut_off(model: onnx.ModelProto, home: Path) -> list[NodeProduct]:
    """Return the products that this processor cuts off, as far as weights tell: small ones are safe with any kernel."""
    wrong = [f for f in found(model) if not exact(f.product)]
    stored = {t.name: t for part in graph.graphs(model) for t in part.initializer} if wrong else {}
    return [f for f in wrong if _large(stored.get(f.reader.input[f.weights]), f.product.weights, home)]


def _large(tensor: onnx.TensorProto | None, kind: str, home: Path) -> bool:
    """Say whether weights may take a sum beyond 16 bits; those that are not stored, or cannot be read, may."""
    low, high = HARMLESS[kind]
    values = _values(tensor, kind, home) if tensor is not None else None
    return values is None or (values.size > 1 and bool(values.min() < low or values.max() > high))


def _values(tensor: onnx.TensorProto, kind: str, home: Path) -> np.ndarray | None:
    try:
        if not graph.external(tensor):
            return np.asarray(onnx.numpy_helper.to_array(tensor))
        piece = external.piece_of(tensor)
        if external.path_trouble(piece.location) is not None:
            return None
        return np.memmap(home / piece.location, np.dtype(kind), "r", piece.offset, tuple(tensor.dims))
    except (OSError, ValueError):  # no such file, or too short: there is a finding for that
        return None


def findings(model: onnx.ModelProto, home: Path) -> list[ProductCutOff]:
    """Return one finding for each kind of product that comes out wrong on this processor."""
    kinds: dict[Product, list[NodeProduct]] = {}
    for item in cut_off(model, home):
        kinds.setdefault(item.product, []).append(item)
    return [_finding(product, items) for product, items in kinds.items()]


def _finding(product: Product, items: list[NodeProduct]) -> ProductCutOff:
    first = items[0].place
    told = answer(product, 1)
    return ProductCutOff(
        str(product),
        nodes=tuple(i.place.label for i in items),
        want=float(expected(product, 1)[0, 0]),
        got=float(told[0, 0]) if told is not None else None,
        mended=mendable(product),
        location=Location(onnx_node=first.label, op=first.node.op_type),
    )


def mendable(product: Product) -> bool:
    """Say whether weights of the other sign are multiplied right."""
    return (product.domain, product.op) != BLOCKS and has_kernel(product.flipped()) and exact(product.flipped())
