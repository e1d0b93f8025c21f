"""Models that do not generate: `hf:DIRECTORY` through the plain path, with the sizes that they take free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import families
import numpy as np
import pytest
import torch
import transformers

import torchferry
from torchferry.cli import hugging
from torchferry.tasks import task_of

TEXT = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
IMAGE = {**TEXT, "image_size": 16, "patch_size": 8}
DISTIL = {"vocab_size": 97, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
CLIP = {"text_config": {**TEXT, "max_position_embeddings": 32}, "vision_config": IMAGE, "projection_dim": 16}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertForSequenceClassification": ("bert", TEXT),
    "RobertaForSequenceClassification": ("roberta", {**TEXT, "max_position_embeddings": 64, "pad_token_id": 1}),
    "DistilBertForSequenceClassification": ("distilbert", DISTIL),
    "DebertaForSequenceClassification": ("deberta", {**TEXT, "type_vocab_size": 0}),
    "DebertaV2ForSequenceClassification": ("deberta-v2", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "BertModel": ("bert", TEXT),
    "ViTForImageClassification": ("vit", IMAGE),
    "CLIPModel": ("clip", CLIP),
}
FAST = ("RobertaForSequenceClassification",)


def saved(name: str, place: Path) -> Path:
    """Write a small model of a class to a directory, as `save_pretrained` does, and return the directory."""
    kind, options = MODELS[name]
    config = transformers.AutoConfig.for_model(kind, **options)
    families.drawn(getattr(transformers, name)(config)).save_pretrained(place)
    return place


def other(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return an input for five rows, longer if it is a text, the last row padded on the right."""
    if tensor.is_floating_point():
        return torch.randn((5, *tensor.shape[1:]), generator=torch.Generator().manual_seed(1))
    if name.endswith("mask"):
        mask = torch.ones((5, 11), dtype=tensor.dtype)
        mask[-1, 6:] = 0
        return mask
    return torch.randint(3, 90, (5, 11), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in MODELS])
def test_an_encoder_crosses_with_its_sizes_free(name: str, tmp_path: Path) -> None:
    model, example, *_ = hugging.load(str(saved(name, tmp_path / "hf")), trust_remote_code=False)
    assert task_of(model) is None
    result = torchferry.export(model, (), tmp_path / "model.onnx", kwargs=example)
    assert result.ok
    inputs = {key: other(key, value) for key, value in example.items()}
    with torch.no_grad():
        wanted = model(**inputs).to_tuple()[0]
    got = torchferry.InferenceSession(str(result.path)).run(None, result.feeds((), inputs))[0]
    keep = inputs["attention_mask"].bool() if wanted.shape[:2] == (5, 11) else torch.ones(wanted.shape[0], dtype=torch.bool)
    np.testing.assert_allclose(got[keep.numpy()], wanted[keep].numpy(), rtol=1e-3, atol=1e-4)
