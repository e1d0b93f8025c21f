"""Numbers that a graph reckons with: is one of them an example's size, or made from it? A mean may be a factor of 1/16."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx

from torchferry.check.reading import graph

ARITHMETIC = ("Mul", "Div", "Add", "Sub", "Pow")
# what activations, norms and losses are made of, whatever the sizes
ORDINARY = (1, 2, 3, 6, 10, 100, 0.044715, 1.702, np.pi, np.e, np.sqrt(2), np.sqrt(2 / np.pi), np.log(2), np.log(10), 255)
SMALL, LARGE = 1e-3, 1e3  # what keeps a division from zero, and what hides under a mask


def of_size(model: onnx.ModelProto, sizes: Iterable[int]) -> str | None:
    """Return a node that reckons with a size, or with what is commonly made from one; None if there is none."""
    laws = {v for n in sizes for v in (n, n - 1, n + 1, n * n, np.sqrt(n), np.log(n), np.log2(n)) if v not in (0, 1)}
    return next((label for label, number in _scalars(model) if _is_one(number, laws)), None)


def unexplained(model: onnx.ModelProto) -> str | None:
    """Return a node that reckons with a number which neither custom nor a fixed size of the file explains; None if none does."""
    dims = {int(d) for t in graph.tensors(model) for d in t.dims if d > 1}
    known = {float(v) for v in ORDINARY} | {float(v) for d in dims for v in (d, np.sqrt(d), d**0.25)}
    for label, number in _scalars(model):
        if SMALL < abs(number) < LARGE and not _is_one(number, known):
            return label
    return None


def _scalars(model: onnx.ModelProto) -> Iterator[tuple[str, float]]:
    """Yield each single number that a node adds, multiplies with or raises to, and the node's label."""
    constants = graph.constants(model.graph)
    for place in graph.nodes_of(model.graph):
        for name in place.node.input if place.node.op_type in ARITHMETIC else ():
            value = constants.get(name)
            if value is not None and value.size == 1 and value.dtype.kind in "fiu":
                yield place.label, float(value.reshape(-1)[0])


def _is_one(number: float, known: Iterable[float]) -> bool:
    """Whether a number, or one over it, is one of those known; the sign does not matter."""
    return any(np.isclose(abs(number), v, rtol=1e-5) or np.isclose(abs(number), 1 / v, rtol=1e-5) for v in known if v)
