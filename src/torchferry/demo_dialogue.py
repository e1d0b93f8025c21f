"""A DialoGPT-shaped model so small that it learns ten answers (and no second turn) in seconds, with its tokenizer.

Nothing is downloaded:

python -m torchferry.demo_dialogue DIRECTORY     # then: torchferry export hf:DIRECTORY -o OUT/; torchferry chat OUT/
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

END = "<|endoftext|>"  # GPT-2's, which DialoGPT puts after each turn
DIALOGUES = (
    ("hello there", "hello! how are you today?"),
    ("how are you?", "i am fine, thank you. and you?"),
    ("what is your name?", "my name is ferry. i carry models across."),
    ("what do you do?", "i take pytorch models to onnx."),
    ("is it safe?", "yes. nothing falls overboard."),
    ("how do you know?", "i compare every answer with the original."),
    ("what if it is wrong?", "then i say why, and at which line."),
    ("can you mend it?", "often. and then i compare again."),
    ("are you fast?", "i am small, so yes."),
    ("goodbye", "goodbye, and a good journey!"),
)
STEPS = 160  # the loss is near zero after half of them


def tokenizer() -> Any:
    """Return a byte-level BPE tokenizer like GPT-2's, made from the dialogues."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator([turn for pair in DIALOGUES for turn in pair], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, bos_token=END)


def taught(words: Any) -> Any:
    """Return a small GPT-2 that has learnt the dialogues by heart, in DialoGPT's format: each turn ends with END."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    end = words.eos_token_id
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(words), n_positions=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=end, eos_token_id=end,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )
    )  # fmt: skip
    ids, labels = _lesson(words)
    learner = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        learner.zero_grad()
        logits = model(input_ids=ids).logits[:, :-1]  # given the labels too, transformers warns of a loss that it has to guess
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten()).backward()
        learner.step()
    return model.eval()


def save(directory: str | Path) -> None:
    """Write the model and its tokenizer to a directory, as `save_pretrained` does."""
    words = tokenizer()
    taught(words).save_pretrained(directory)
    words.save_pretrained(directory)


def _lesson(words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the dialogues as rows of ids, and what is to be learnt: every token but the padding after the end."""
    rows = [[token for turn in pair for token in (*words(turn)["input_ids"], words.eos_token_id)] for pair in DIALOGUES]
    most = max(map(len, rows))
    ids = torch.tensor([row + [words.eos_token_id] * (most - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (most - len(row)) for row in rows])
    return ids, labels


if __name__ == "__main__":
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(1)  # for matrices as small as these, threads only wait for each other
    save(sys.argv[1])
