"""What a processor without VNNI answers, by a model of it: for examples and tests where there is another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from torchferry.saturation import asked
from torchferry.saturation.product import QDQ, Product, activations, expected, pairs_cut_off, scaled, weights, zero_point


@contextmanager
def without_vnni() -> Iterator[None]:
    """Ask the model instead of this processor, as long as this is active."""
    asked.WHO.append(modelled)
    try:
        yield
    finally:
        asked.WHO.remove(modelled)


def modelled(product: Product, rows: int) -> np.ndarray:
    """Return what comes out: sums of unsigned by signed numbers are cut off, all others are right."""
    a, b, rounds = activations(product, rows), weights(product), "x" in product.roles
    if product.op == "ConvInteger":  # its weights come first
        if (product.activations, product.weights) != ("int8", "uint8"):
            return expected(product, rows)
        return (pairs_cut_off(b.T, a.T).T - zero_point("uint8") * a.sum(1, keepdims=True)).astype(np.float64)
    # activations that onnxruntime rounds itself, or that stand between nodes that it fuses, it makes unsigned
    if product.weights == "uint8" or (product.activations == "int8" and not rounds and product.domain != QDQ):
        return expected(product, rows)
    if rounds:
        return pairs_cut_off(a * 255, b) / 255
    away = zero_point("uint8") if product.activations == "int8" else 0
    return scaled(product, pairs_cut_off(a + away, b) - away * b.sum(0))
