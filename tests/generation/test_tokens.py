"""What the tokenizer gives is what the graph takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from torchferry.demo_dialogue import END
from torchferry.demo_dialogue import tokenizer as small_tokenizer
from torchferry.errors import FeedError, UsageError
from torchferry.runtime import tokens


def test_a_missing_pad_token_is_set_and_said() -> None:
    tokenizer = small_tokenizer()
    said = tokens.ready(tokenizer)
    assert tokenizer.pad_token == END
    assert tokenizer.padding_side == "left"
    assert any("no pad token" in words for words in said)
    assert any("on the left" in words for words in said)
    assert tokens.ready(tokenizer) == (), "what is in order is left alone"


def test_token_types_are_not_given_to_a_graph_without_them() -> None:
    tokenizer = small_tokenizer()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    tokens.ready(tokenizer)
    assert set(tokenizer("hello")) == {"input_ids", "attention_mask"}


def test_the_exported_tokenizer_is_ready(exported: Path) -> None:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    batch = tokenizer(["hello there, how are you?", "how"], padding=True, return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    assert batch["attention_mask"][1, 0] == 0
    assert batch["attention_mask"][1, -1] == 1


def test_prompts_of_different_lengths_are_padded_on_the_left(tokenizer: Any) -> None:
    tokens.ready(tokenizer)
    batch = tokens.encode(tokenizer, ["hello there", "the cat sat on the mat"])
    assert batch["input_ids"].dtype == torch.int64
    assert batch["attention_mask"][0, 0] == 0
    assert batch["attention_mask"][:, -1].tolist() == [1, 1]


def test_an_empty_prompt_begins_with_the_bos_token(tokenizer: Any) -> None:
    assert tokens.encode(tokenizer, [""])["input_ids"].tolist() == [[tokenizer.bos_token_id]]


def test_an_empty_prompt_without_a_token_to_begin_with_is_refused() -> None:
    tokenizer = small_tokenizer()
    tokenizer.bos_token = tokenizer.eos_token = None
    with pytest.raises(FeedError, match="prompt is empty"):
        tokens.encode(tokenizer, [""])


def test_a_prompt_that_leaves_no_room_is_refused_with_numbers(tokenizer: Any) -> None:
    with pytest.raises(FeedError, match="positions the model has"):
        tokens.encode(tokenizer, ["the cat sat on the mat " * 10], longest=48, new_tokens=20)


def test_a_directory_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no tokenizer"):
        tokens.load(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "source.spm"])
def test_a_tokenizer_is_seen_by_any_of_its_files(name: str, tmp_path: Path) -> None:
    for other in ("model.onnx", "config.json", "model.safetensors"):
        (tmp_path / other).write_text("")
    assert not tokens.present(tmp_path)
    (tmp_path / name).write_text("")
    assert tokens.present(tmp_path)
    with pytest.raises(UsageError, match="cannot be loaded"):
        tokens.load(tmp_path)
