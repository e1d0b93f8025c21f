"""Door to the kinds of layers that transformers' caches are made of: those with states beside keys and values are younger.

Relies on `cache_utils.DynamicLayer` and `DynamicSlidingWindowLayer`, which every release that torchferry takes has, and on
`LinearAttentionLayer` and its kin, whose layers hold several states since transformers 5.20 (`number_of_states`).
Should they move: a kind that nothing is an instance of stands for each; caches of keys and values work all the same, and
`states_missing` says which release a model with states needs.
"""

from __future__ import annotations

import inspect
from typing import Any

import transformers
from transformers import cache_utils

__all__ = [
    "LinearAttentionAndFullAttentionLayer",
    "LinearAttentionAndSlidingWindowAttentionLayer",
    "LinearAttentionCacheLayerMixin",
    "LinearAttentionLayer",
    "states_missing",
]


class Absent:
    """A kind of layer that the installed release does not have: nothing is one."""


def _holds_several_states() -> bool:
    kind = getattr(cache_utils, "LinearAttentionLayer", None)
    return kind is not None and "number_of_states" in inspect.signature(kind.__init__).parameters


_KNOWN = _holds_several_states()


def _kind(name: str) -> Any:
    return getattr(cache_utils, name) if _KNOWN else type(name, (Absent,), {})


LinearAttentionCacheLayerMixin = _kind("LinearAttentionCacheLayerMixin")
LinearAttentionLayer = _kind("LinearAttentionLayer")
LinearAttentionAndFullAttentionLayer = _kind("LinearAttentionAndFullAttentionLayer")
LinearAttentionAndSlidingWindowAttentionLayer = _kind("LinearAttentionAndSlidingWindowAttentionLayer")


def states_missing() -> str:
    """Return in words that caches with states need a newer transformers; nothing where the installed one has them."""
    here = transformers.__version__
    return "" if _KNOWN else f"; states beside keys and values need transformers 5.20 or later, and {here} is here"
