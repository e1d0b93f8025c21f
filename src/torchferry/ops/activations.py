"""Activations that came late to ONNX, written out in older operators; for whoever builds a graph, by whatever means."""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

Value = TypeVar("Value")  # of a graph: an object of onnx-ir, or a name


class Graph(Protocol[Value]):
    """What puts an operator into a graph, and a number of the dtype at hand."""

    def op(self, op_type: str, *inputs: Value, **attributes: float) -> Value:
        """Return what an operator gives."""

    def number(self, value: float) -> Value:
        """Return a constant."""


def gelu(graph: Graph[Value], x: Value, *, tanh: bool) -> Value:
    """Return half of x, times one more than its bell curve, or than the usual approximation of it."""
    if tanh:
        cube = graph.op("Mul", x, graph.op("Mul", x, x))
        inner = graph.op("Add", x, graph.op("Mul", cube, graph.number(0.044715)))
        bent = graph.op("Tanh", graph.op("Mul", inner, graph.number(math.sqrt(2 / math.pi))))
    else:
        bent = graph.op("Erf", graph.op("Mul", x, graph.number(math.sqrt(0.5))))
    return graph.op("Mul", graph.op("Mul", x, graph.number(0.5)), graph.op("Add", bent, graph.number(1.0)))


def hard_swish(graph: Graph[Value], x: Value) -> Value:
    """Return x times a sigmoid of straight lines."""
    return graph.op("Mul", x, graph.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def mish(graph: Graph[Value], x: Value) -> Value:
    """Return x times the tanh of its softplus."""
    return graph.op("Mul", x, graph.op("Tanh", graph.op("Softplus", x)))
