"""A kind of product of 8-bit integers, the numbers that it is asked with, and what these come to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

TERMS, COLUMNS = 128, 32  # of the product that is asked for: enough for kernels that take many at a time
# what stands where among an operator's inputs: activations and weights (a, b), their scales (sa, sb), their zero points (za, zb),
# the scale and zero point of what comes out (sy, zy); x are activations that the operator rounds itself
INPUTS = {
    ("", "MatMulInteger"): "a b za zb",
    ("", "ConvInteger"): "a b za zb",
    ("", "QLinearMatMul"): "a sa za b sb zb sy zy",
    ("", "QLinearConv"): "a sa za b sb zb sy zy",
    ("com.microsoft", "DynamicQuantizeMatMul"): "x b sb zb",
    ("com.microsoft", "MatMulIntegerToFloat"): "a b sa sb za zb",
    ("com.microsoft", "QGemm"): "a sa za b sb zb",
}
QDQ, FUSED = "QDQ", ("MatMul", "Gemm", "Conv")  # plain products between DequantizeLinear nodes, of which onnxruntime makes others
BLOCKS = ("com.microsoft", "MatMulNBits")
LARGEST = 100  # what the largest number becomes where the operator rounds its result to eight bits


@dataclass(frozen=True, slots=True)
class Product:
    """A kind of product: the operator, and the element types of its activations and weights ("uint8", "int8")."""

    domain: str
    op: str
    activations: str
    weights: str
    block: int = 0  # of MatMulNBits: how many weights share a scale

    def __str__(self) -> str:
        around = " between DequantizeLinear nodes" if self.domain == QDQ else ""
        return f"{self.op} of {self.activations} by {self.weights}{around}"

    @property
    def roles(self) -> list[str]:
        """What the operator's inputs are."""
        if (self.domain, self.op) == BLOCKS:
            return ["x", "b", "sb"]
        return INPUTS[self.domain, self.op].split() if self.domain != QDQ else ["a", "b"]

    @property
    def step(self) -> float:
        """The scale of what comes out, where that is rounded to eight bits."""
        return TERMS * np.iinfo(self.activations).max * 128 / LARGEST

    def flipped(self) -> Product:
        """Return the same product with weights of the other sign: 128 away, and so is their zero point."""
        return replace(self, weights="uint8" if self.weights == "int8" else "int8")


def every_kind() -> list[Product]:
    """Return every kind of product that a file may have, but for MatMulNBits, which has no other types."""
    operators = (*INPUTS, *((QDQ, op) for op in FUSED))
    every = [Product(*operator, a, b) for operator in operators for a in ("uint8", "int8") for b in ("uint8", "int8")]
    return [p for p in every if p.activations == "uint8" or "x" not in p.roles]


def activations(product: Product, rows: int) -> np.ndarray:
    """Return the largest there are; where the operator rounds them itself, numbers of which it makes these."""
    largest = 1 if "x" in product.roles else np.iinfo(product.activations).max
    return np.full((rows, TERMS), largest, np.int64)


def weights(product: Product) -> np.ndarray:
    """Return columns of the largest weights, and columns of the smallest."""
    span = np.iinfo(product.weights)
    return np.repeat(np.array([[span.max, span.min]], np.int64), TERMS, axis=0).repeat(COLUMNS // 2, axis=1)


def zero_point(kind: str) -> int:
    """Return the integer that stands for zero."""
    return 0 if kind == "int8" else 128


def expected(product: Product, rows: int) -> np.ndarray:
    """Return what the arithmetic says."""
    return scaled(product, activations(product, rows) @ (weights(product) - zero_point(product.weights)))


def scaled(product: Product, whole: np.ndarray) -> np.ndarray:
    """Return sums as the operator gives them: rounded to eight bits, or as they are."""
    if "sy" not in product.roles:
        return whole.astype(np.float64)
    return np.rint(whole / product.step) + zero_point(product.activations)


def pairs_cut_off(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices of integers as it is computed in pairs whose sum is cut off at 16 bits."""
    odd = a.shape[-1] % 2  # the last product of an odd number is alone
    a, b = np.pad(a.astype(np.int64), ((0, 0), (0, odd))), np.pad(b.astype(np.int64), ((0, odd), (0, 0)))
    pairs = a[:, 0::2, None] * b[None, 0::2] + a[:, 1::2, None] * b[None, 1::2]
    return np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=1)
