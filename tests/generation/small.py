"""A small DialoGPT-shaped model, and a tokenizer like GPT-2's that is trained in a second."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers

EOS = "<|endoftext|>"
TEXT = "hello there, how are you today? the cat sat on the mat and the dog sat on the cat. i am fine, thank you!"
POSITIONS = 48


def small_tokenizer() -> Any:
    """Return a byte-level BPE tokenizer like GPT-2's: no pad token, padding on the right, token_type_ids given."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=[EOS], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=EOS, bos_token=EOS, padding_side="right")


def small_model(vocabulary: int, **changes: Any) -> Any:
    """Return a GPT-2 whose next token depends on all tokens before it: positions weigh as much as words."""
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=POSITIONS, bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=False, **changes,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=random) * (2 / math.sqrt(parameter.shape[0])))
    return model
