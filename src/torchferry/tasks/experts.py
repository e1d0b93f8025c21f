"""Mixtures of experts in a form that a graph can hold, for as long as the graph is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchferry.foreign.transformers_export import can_set_experts, experts_setting

DENSE = "batched_mm"  # each token gets the weights of its experts; transformers' other forms sort tokens, whose counts are data


@contextmanager
def experts_in_form(model: Any, form: Any = DENSE) -> Iterator[None]:
    """Let a model send tokens to its experts by a batched product, or in another form, and as before when the block is over.

    The graph is captured from the dense form; the text that it writes is compared with the model in its own form.
    """
    if not can_set_experts(model):
        yield
        return
    before = experts_setting(model)
    model.set_experts_implementation(form)
    try:
        yield
    finally:
        model.set_experts_implementation(before)


def form_of_experts(model: Any) -> Any:
    """Return the form that a model's experts have at present; None where it has no choice of one."""
    return experts_setting(model) if can_set_experts(model) else None
