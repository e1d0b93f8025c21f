"""Along which axes does a node mix what it is given? An axis of size 1 that a likelier reading lets move may be one of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph

ALONG_AXIS = {"Softmax": -1, "LogSoftmax": -1, "Hardmax": -1, "ArgMax": 0, "ArgMin": 0, "TopK": -1, "LpNormalization": -1}
RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
SPATIAL = frozenset({"Conv", "ConvTranspose", "InstanceNormalization", "Resize", "Upsample"})


def grows_in_a_sum(model: onnx.ModelProto, old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Return the first node that mixes along an axis which was of size 1 and is not any more; None if there is none."""
    fixed = set(graph.constants(model.graph)) | {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        for name, axis in _mixed(node, old, fixed):
            a, b = old.get(name), new.get(name)
            if (
                isinstance(a, np.ndarray)
                and isinstance(b, np.ndarray)
                and a.ndim == b.ndim
                and a.shape[axis] == 1 < b.shape[axis]
            ):
                return graph.label(node)
    return None


def _mixed(node: onnx.NodeProto, known: dict[str, Any], fixed: set[str]) -> Iterator[tuple[str, int]]:
    """Yield each (value, axis) along which a node mixes."""
    first = node.input[0] if node.input else ""
    array = known.get(first)
    if not isinstance(array, np.ndarray) or not array.ndim:
        return
    rank, values = array.ndim, graph.attributes(node)
    if node.op_type in ALONG_AXIS:
        yield first, int(values.get("axis", ALONG_AXIS[node.op_type])) % rank
    elif node.op_type == "CumSum":
        yield first, int(np.asarray(known.get(node.input[1], 0)).reshape(-1)[0]) % rank
    elif node.op_type.startswith("Reduce"):
        given = values.get("axes", known.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None)
        yield from ((first, int(a) % rank) for a in (range(rank) if given is None else np.asarray(given).reshape(-1)))
    elif node.op_type in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        yield from ((first, a) for a in range(int(values.get("axis", -1)) % rank, rank))
    elif node.op_type == "MatMul" and not fixed & set(node.input):
        yield first, rank - 1
    elif node.op_type in RECURRENT:
        yield first, 1 if values.get("layout") else 0
    elif node.op_type in SPATIAL or "Pool" in node.op_type:
        yield from ((first, a) for a in range(2, rank))
    elif node.op_type in ("Attention", "MultiHeadAttention") and len(node.input) > 1:
        keys = known.get(node.input[1])
        yield from ((node.input[1], a) for a in ([keys.ndim - 2] if isinstance(keys, np.ndarray) and keys.ndim > 2 else []))
    elif node.op_type == "Einsum":
        yield from _summed(values.get("equation", b"").decode("utf-8", "replace").replace(" ", ""), list(node.input))


def _summed(equation: str, inputs: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the axes that an Einsum sums over; those before an ellipsis are counted from the front, those behind from the end."""
    terms, _, result = equation.partition("->")
    for name, term in zip(inputs, terms.split(","), strict=False):
        front, dots, behind = term.partition("...")
        yield from ((name, i) for i, letter in enumerate(front) if letter not in result)
        yield from ((name, i - len(behind)) for i, letter in enumerate(behind) if dots and letter not in result)


def window_takes_all(model: onnx.ModelProto, old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Return a window that took in all of an axis that moved: it was meant to, or just happened to; nothing can tell."""
    for node in model.graph.node:
        a, b = (v.get(node.input[0]) if node.input else None for v in (old, new))
        kernel = graph.attributes(node).get("kernel_shape", ()) if "Pool" in node.op_type else ()
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or not a.ndim == b.ndim == len(kernel) + 2:
            continue
        if any(size == was != now for size, was, now in zip(kernel, a.shape[2:], b.shape[2:], strict=True)):
            return graph.label(node)
    return None
