"""Mixtures of experts in a form that a graph can hold, for as long as the graph is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DENSE = "batched_mm"  # each token gets the weights of its experts; transformers' other forms sort tokens, whose counts are data


@contextmanager
def dense_experts(model: Any) -> Iterator[None]:
    """Let a model send tokens to its experts by a batched product, and as before when the block is over.

    The graph is captured from this form; the text that it writes is compared with the model in its own form afterwards.
    """
    settable = getattr(type(model), "_can_set_experts_implementation", None)
    if settable is None or not settable():
        yield
        return
    before = model.config._experts_implementation
    model.set_experts_implementation(DENSE)
    try:
        yield
    finally:
        model.set_experts_implementation(before)
