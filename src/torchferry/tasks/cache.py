"""The cache of a transformers model as a flat row of tensors: key and value of layer 0, of layer 1, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from torchferry.errors import UsageError

PLAIN = "export it without a task, as a plain model (`-o model.onnx`)"


class GrowingLayer(DynamicLayer):
    """A cache layer that keeps all it was given, and whose length is a size of its tensors and nothing else.

    transformers' own layers ask whether they are empty, or count in Python: either would be fixed in the graph. A layer
    with a sliding window keeps everything here too; the attention mask does the sliding, so the numbers are the same, and
    every layer has one and the same past length.
    """

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys, values
        self.is_initialized = True

    def get_seq_length(self) -> int:
        """Return the number of tokens in the cache, zero included."""
        return self.keys.shape[-2]


def rebuilt(tensors: Sequence[torch.Tensor]) -> DynamicCache:
    """Return a cache that holds the given keys and values."""
    cache = DynamicCache()
    cache.layers = [GrowingLayer(tensors[i], tensors[i + 1]) for i in range(0, len(tensors), 2)]
    return cache


def flat(cache: Any) -> tuple[torch.Tensor, ...]:
    """Return the keys and values of a cache, layer by layer."""
    return tuple(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))


def names(count: int, prefix: str, middle: str = "") -> Iterator[str]:
    """Yield `prefix.{i}.{middle}key` and `...value` for each layer."""
    for layer in range(count):
        yield f"{prefix}.{layer}.{middle}key"
        yield f"{prefix}.{layer}.{middle}value"


def refuse_unknown(cache: Any, model: Any, batch: int, length: int) -> None:
    """Raise UsageError unless every layer of a cache is a key and a value of (batch, heads, length, width)."""
    who = type(model).__name__
    if cache is None:
        raise UsageError(f"{who} gave no `past_key_values` for use_cache=True, so there is no cache to put into a graph; {PLAIN}")
    for index, layer in enumerate(getattr(cache, "layers", ())):
        if not isinstance(layer, DynamicLayer):
            raise UsageError(
                f"{who} keeps a {type(layer).__name__} in layer {index} of its cache, not keys and values: "
                f"a recurrent state does not grow with the text, and this task has no names for it; {PLAIN}"
            )
        for tensor in (layer.keys, layer.values):
            if tensor is None or tensor.dim() != 4 or (tensor.shape[0], tensor.shape[2]) != (batch, length):
                shape = "nothing" if tensor is None else tuple(tensor.shape)
                raise UsageError(
                    f"layer {index} of the cache of {who} holds {shape}, not (batch {batch}, heads, length {length}, width)"
                )
    if not getattr(cache, "layers", ()):
        raise UsageError(f"the cache of {who} ({type(cache).__name__}) has no layers that could be inputs and outputs")
