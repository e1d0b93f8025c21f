"""The sizes that a file may have been exported with, guessed from the numbers that its constants speak of."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from torchferry.check.reading import graph
from torchferry.repair.search.baked.size_readings import ELEMENTWISE, RECURRENT


def example_guesses(node: str, model: onnx.ModelProto, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return sizes at which the model may have been exported, likeliest first: numbers that its constants speak of."""
    numbers = _numbers(model, node)
    guesses: list[dict[str, int]] = []
    free = list(sizes)
    for near in (numbers[:6], numbers[:12]):
        _combine(free, near, {}, guesses)
    return [g for i, g in enumerate(guesses) if g not in guesses[:i] and g != dict(sizes)][:80]


def _combine(free: list[str], numbers: list[int], so_far: dict[str, int], into: list[dict[str, int]]) -> None:
    if len(into) > 400:
        return
    if not free:
        into.append(dict(so_far))
        return
    for number in numbers:
        _combine(free[1:], numbers, {**so_far, free[0]: number}, into)


def _numbers(model: onnx.ModelProto, node: str) -> list[int]:
    """Return small numbers in constants that shape things, those of the failing node first."""
    constants = graph.constants(model.graph)
    found: list[int] = []
    places = sorted(graph.nodes_of(model.graph), key=lambda p: p.label != node)
    for place in places:
        values = [constants[i] for i in place.node.input if i in constants]
        if place.node.op_type in ("Reshape", "Expand", "Split", "Range", "ConstantOfShape", "Tile", "Resize"):
            found += [int(n) for v in values if v.dtype.kind == "i" for n in v.reshape(-1)]
        if place.node.op_type in ELEMENTWISE | set(RECURRENT) or place.label == node:
            found += [n for v in values for n in v.shape]
    whole = [n for n in found if 1 <= n <= 512]
    parts = [n // k for n in whole for k in (2, 4, 8) if n % k == 0 and n // k >= 1]
    return list(dict.fromkeys([*whole, 1, *parts]))
