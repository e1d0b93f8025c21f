"""What a layer of a transformers cache holds, by name: keys and values, which grow with the text, and states, which do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

from torchferry.foreign.transformers_layers import (
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

GROWING = ("key", "value")
STATES = {"conv_state": "conv_states", "recurrent_state": "recurrent_states"}  # transformers' own attribute for each


def held(layer: Any) -> dict[str, torch.Tensor]:
    """Return what a layer remembers; nothing for one that was never written to."""
    found: dict[str, torch.Tensor] = {}
    if isinstance(layer, CacheLayerMixin) and layer.is_initialized:
        found |= {"key": layer.keys, "value": layer.values}
    if isinstance(layer, LinearAttentionCacheLayerMixin):
        for kind, attribute in STATES.items():
            states = getattr(layer, attribute)
            found |= {f"{kind}{index or ''}": state for index, state in states.items() if state is not None}
    return found


def states_of(remembered: Mapping[str, torch.Tensor]) -> dict[str, dict[int, torch.Tensor]]:
    """Return the states among what a layer remembers, by transformers' attribute and number."""
    found: dict[str, dict[int, torch.Tensor]] = {attribute: {} for attribute in STATES.values()}
    for name, tensor in remembered.items():
        if name not in GROWING:
            kind = name.rstrip("0123456789")
            found[STATES[kind]][int(name[len(kind) :] or 0)] = tensor
    return found


def layer_of(remembered: Mapping[str, torch.Tensor]) -> Any:
    """Return a layer that remembers this; the tensors are not copied."""
    states = states_of(remembered)
    count = 1 + max((index for numbered in states.values() for index in numbered), default=-1)
    if not count:
        layer: Any = DynamicLayer()
    elif "key" in remembered:
        layer = LinearAttentionAndFullAttentionLayer(number_of_states=count)
    else:
        layer = LinearAttentionLayer(number_of_states=count)
    for attribute, numbered in states.items():
        for index, state in numbered.items():
            getattr(layer, attribute)[index] = state
            getattr(layer, f"is_{attribute}_initialized")[index] = True
            layer.has_previous_state[index] = True
            layer.dtype, layer.device = state.dtype, state.device
    if "key" in remembered:
        layer.keys, layer.values = remembered["key"], remembered["value"]
        layer.dtype, layer.device, layer.is_initialized = layer.keys.dtype, layer.keys.device, True
    return layer
