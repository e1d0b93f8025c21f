"""transformers' own patches, and its ways to compute experts, as the door has them."""

from __future__ import annotations

import sys

import pytest
import torch
import transformers
from transformers import MixtralConfig, MixtralModel

from torchferry.errors import ForeignApiMoved
from torchferry.foreign import transformers_export as door

NEWER = pytest.mark.skipif(transformers.__version__.startswith("4."), reason="transformers exports by patches since release 5")


def experts() -> MixtralModel:
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
    return MixtralModel(MixtralConfig(**sizes, num_key_value_heads=2, num_local_experts=3, use_cache=False)).eval()


@NEWER
def test_the_registry_has_patches_of_what_is_loaded() -> None:
    found = door.patches("dynamo")
    assert found
    assert all(callable(factory(getattr(owner, attribute))) for owner, attribute, factory in found)


@NEWER
def test_a_backend_that_is_not_there_is_told_with_the_installed_release() -> None:
    with pytest.raises(ForeignApiMoved, match=r"transformers 5.* has no patches for `no-such-backend`"):
        door.patches("no-such-backend")


def test_a_release_without_exporters_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers.exporters.exporter_dynamo", None)
    with pytest.raises(ForeignApiMoved, match=r"transformers \d.* keeps the patches of its exporters elsewhere"):
        door.patches("dynamo")


@NEWER
def test_experts_are_computed_in_the_way_that_is_set_for_a_while() -> None:
    model = experts()
    before = door.experts_setting(model)
    assert before != "batched_mm"
    assert any(door.has_other_experts(part, "batched_mm") for part in model.modules())
    with door.experts_computed_by(model.config, "batched_mm"):
        assert door.experts_setting(model) == "batched_mm"
        assert not any(door.has_other_experts(part, "batched_mm") for part in model.modules())
        model(torch.tensor([[1, 2]]))
    assert door.experts_setting(model) == before


@NEWER
def test_models_with_experts_say_that_the_way_can_be_set() -> None:
    assert door.can_set_experts(experts())
    assert not door.can_set_experts(torch.nn.Linear(1, 1))
