"""The cache of a transformers model as a flat row of tensors: all that layer 0 remembers, then layer 1, and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from torchferry.errors import UsageError
from torchferry.foreign.transformers_layers import (
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionLayer,
    states_missing,
)
from torchferry.runtime.cache_layers import GROWING, held, states_of

PLAIN = "export it without a task, as a plain model (`-o model.onnx`)"
# a class of its own may remember more than these do, and a graph would forget it
KNOWN = (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
)


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """One tensor of a cache: of which layer, and what it is (`key`, `value`, `conv_state`, `recurrent_state`)."""

    layer: int
    kind: str

    @property
    def grows(self) -> bool:
        """Whether its third axis is as long as the past."""
        return self.kind in GROWING

    def name(self, prefix: str, middle: str = "") -> str:
        """Return the name of an input or output for it: `prefix.{layer}.{middle}{kind}`."""
        return f"{prefix}.{self.layer}.{middle}{self.kind}"


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


class StateLayer(LinearAttentionLayer):
    """A cache layer whose states are always there: before the first token they are zeros, which is the same as none.

    transformers' own asks whether there was a token before, and that would be fixed in the graph.
    """

    def __init__(self, remembered: Mapping[str, torch.Tensor]) -> None:
        states = states_of(remembered)
        count = max(map(len, states.values()))
        super().__init__(number_of_states=count)
        # a step may write into its states, and a graph must not write into its inputs
        self.conv_states |= {i: t.clone() for i, t in states["conv_states"].items()}
        self.recurrent_states |= {i: t.clone() for i, t in states["recurrent_states"].items()}
        self.has_previous_state = dict.fromkeys(range(count), True)
        self.record_past = True  # so that models take one way for one token and for several

    def update_conv_state(self, conv_states: torch.Tensor, state_idx: int = 0, **_: Any) -> torch.Tensor:
        """Return what was remembered with the new behind it, and keep the end of that."""
        before = self.conv_states[state_idx]
        whole = torch.cat([before, conv_states], dim=-1)
        self.conv_states[state_idx] = whole[..., -before.shape[-1] :]
        return whole

    def update_recurrent_state(self, recurrent_states: torch.Tensor, state_idx: int = 0, **_: Any) -> torch.Tensor:
        """Keep the new state, and return it."""
        self.recurrent_states[state_idx] = recurrent_states
        return recurrent_states


class GrowingStateLayer(StateLayer, GrowingLayer):
    """A cache layer with both: attention and a recurrence side by side."""

    def __init__(self, remembered: Mapping[str, torch.Tensor]) -> None:
        StateLayer.__init__(self, remembered)
        GrowingLayer.__init__(self, remembered["key"], remembered["value"])


def keys_and_values(layers: int) -> tuple[CacheSlot, ...]:
    """Return the slots of layers that are attention and nothing else."""
    return tuple(CacheSlot(layer, kind) for layer in range(layers) for kind in GROWING)


def slots(cache: Any) -> tuple[CacheSlot, ...]:
    """Return what a filled cache holds, layer by layer."""
    return tuple(CacheSlot(index, kind) for index, layer in enumerate(own(cache).layers) for kind in held(layer))


def rebuilt(places: Sequence[CacheSlot], tensors: Sequence[torch.Tensor]) -> DynamicCache:
    """Return a cache that holds the given tensors."""
    layers: list[dict[str, torch.Tensor]] = [{} for _ in range(1 + max(slot.layer for slot in places))]
    for slot, tensor in zip(places, tensors, strict=True):
        layers[slot.layer][slot.kind] = tensor
    cache = DynamicCache()
    cache.layers = [_layer(remembered) for remembered in layers]
    return cache


def _layer(remembered: Mapping[str, torch.Tensor]) -> Any:
    if set(remembered) == set(GROWING):
        return GrowingLayer(remembered["key"], remembered["value"])
    return (GrowingStateLayer if "key" in remembered else StateLayer)(remembered)


def flat(cache: Any) -> tuple[torch.Tensor, ...]:
    """Return all that a cache holds, layer by layer."""
    return tuple(tensor for layer in own(cache).layers for tensor in held(layer).values())


def own(cache: Any) -> Any:
    """Return the cache of what was written; some decoders keep it beside one for an encoder that they do not have."""
    return getattr(cache, "self_attention_cache", cache)


def refuse_unknown(cache: Any, model: Any, batch: int, length: int) -> None:
    """Raise UsageError unless a cache holds keys and values of (batch, heads, length, width), and states beside them at most."""
    who = type(model).__name__
    if cache is None:
        raise UsageError(f"{who} gave no `past_key_values` for use_cache=True, so there is no cache to put into a graph; {PLAIN}")
    layers = getattr(own(cache), "layers", ())
    for index, layer in enumerate(layers):
        if type(layer) not in KNOWN:
            raise UsageError(
                f"{who} keeps a {type(layer).__name__} in layer {index} of its cache, which remembers more than keys and values; "
                f"this task has no names for that{states_missing()}; {PLAIN}"
            )
        for kind, tensor in held(layer).items():
            if kind in GROWING and (tensor.dim() != 4 or (tensor.shape[0], tensor.shape[2]) != (batch, length)):
                raise UsageError(
                    f"layer {index} of the cache of {who} holds {tuple(tensor.shape)}, "
                    f"not (batch {batch}, heads, length {length}, width)"
                )
    if not any("key" in held(layer) for layer in layers):
        raise UsageError(
            f"the cache of {who} ({type(cache).__name__}) has no layer with keys and values, whose length says how long "
            f"the text is so far{states_missing()}; {PLAIN}"
        )
