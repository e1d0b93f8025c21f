"""What a layer of a cache holds, by name, and the layer that holds it again."""

from __future__ import annotations

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from torchferry.foreign.transformers_layers import (
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionLayer,
    states_missing,
)
from torchferry.runtime.cache_layers import held, layer_of

PAIR = {"key": torch.arange(24.0).view(2, 2, 3, 2), "value": torch.arange(24.0).view(2, 2, 3, 2) + 1}
YOUNGER = pytest.mark.skipif(bool(states_missing()), reason="caches with states need transformers 5.20")
STATES = {"conv_state": torch.arange(8.0).view(2, 2, 2), "recurrent_state": torch.arange(4.0).view(2, 2)}


@pytest.mark.parametrize(
    ("remembered", "kind"),
    [
        (PAIR, DynamicLayer),
        pytest.param(STATES, LinearAttentionLayer, marks=YOUNGER),
        pytest.param(
            {"conv_state": STATES["conv_state"], "conv_state1": STATES["conv_state"] + 1}, LinearAttentionLayer, marks=YOUNGER
        ),
        pytest.param(PAIR | STATES, LinearAttentionAndFullAttentionLayer, marks=YOUNGER),
    ],
    ids=["attention", "recurrence", "two-states", "both"],
)
def test_a_layer_holds_what_it_was_made_of(remembered: dict[str, torch.Tensor], kind: type) -> None:
    layer = layer_of(remembered)
    assert type(layer) is kind
    assert {name: id(tensor) for name, tensor in held(layer).items()} == {name: id(t) for name, t in remembered.items()}


@pytest.mark.parametrize(
    "remembered",
    [PAIR, pytest.param(STATES, marks=YOUNGER), pytest.param(PAIR | STATES, marks=YOUNGER)],
    ids=["attention", "recurrence", "both"],
)
def test_beams_change_places_in_all_that_is_held(remembered: dict[str, torch.Tensor]) -> None:
    layer = layer_of(remembered)
    layer.reorder_cache(torch.tensor([1, 0]))
    assert all(torch.equal(held(layer)[name], tensor.flip(0)) for name, tensor in remembered.items())


@pytest.mark.parametrize("kind", [DynamicLayer, LinearAttentionLayer, LinearAttentionAndFullAttentionLayer])
def test_a_layer_that_was_never_written_to_holds_nothing(kind: type) -> None:
    assert held(kind()) == {}
