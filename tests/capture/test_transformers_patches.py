"""Models of transformers are captured with its own patches, which are noted and taken away; nothing is copied from it."""

from __future__ import annotations

import importlib

import pytest
import torch
from transformers import MixtralConfig, MixtralModel
from transformers.exporters import utils

import torchferry
from torchferry.capture.patches import transformers_own
from torchferry.records import Finding


def experts() -> MixtralModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
    return MixtralModel(MixtralConfig(**sizes, num_key_value_heads=2, num_local_experts=3, use_cache=False)).eval()


def test_a_mixture_of_experts_is_captured_without_loops_and_says_so() -> None:
    model, notes = experts(), []
    before = (model.config._experts_implementation, torch.nn.functional.scaled_dot_product_attention)
    with transformers_own.noted(model, notes), torch.no_grad():
        assert model.config._experts_implementation == transformers_own.EXPERTS
        model(torch.tensor([[1, 2]]))
    assert (model.config._experts_implementation, torch.nn.functional.scaled_dot_product_attention) == before
    fired = notes[0].fired
    assert {"config._experts_implementation", "torch.nn.functional.scaled_dot_product_attention"} <= set(fired)


def test_patches_are_taken_away_when_the_model_fails() -> None:
    before = torch.nn.functional.scaled_dot_product_attention
    with pytest.raises(ZeroDivisionError), transformers_own.noted(experts(), []):
        raise ZeroDivisionError
    assert torch.nn.functional.scaled_dot_product_attention is before


def test_a_release_that_keeps_its_patches_elsewhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("transformers.exporters.exporter_dynamo")  # fills the registry when it is first loaded
    monkeypatch.setattr(utils, "_PATCHES", None)
    notes: list[Finding] = []
    with transformers_own.noted(experts(), notes):
        pass
    assert "has no patches for `dynamo`" in notes[0].missing


def test_other_models_are_left_alone() -> None:
    notes: list[Finding] = []
    with transformers_own.noted(torch.nn.Linear(2, 2), notes):
        pass
    assert notes == []


@pytest.mark.slow
def test_a_mixture_of_experts_comes_out_verified_with_the_patches_listed() -> None:
    result = torchferry.export(experts(), (torch.randint(0, 20, (2, 5)),))
    assert "CAP060" in [d.code for d in result.diagnoses]
