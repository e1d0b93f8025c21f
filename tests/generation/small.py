"""A small DialoGPT-shaped model whose every token depends on all before it; its tokenizer is the demo's."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers

POSITIONS = 48


def small_model(vocabulary: int, **changes: Any) -> Any:
    """Return a GPT-2 whose next token depends on all tokens before it: positions weigh as much as words."""
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=POSITIONS, bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=False, **changes,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=random) * (2 / math.sqrt(parameter.shape[0])))
    return model
