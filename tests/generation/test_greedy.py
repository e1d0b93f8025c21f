"""A text written without torch and transformers is the one that they write; what asks for more is left to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from small import POSITIONS

from torchferry.cli.main import main
from torchferry.errors import FeedError
from torchferry.runtime import tokens
from torchferry.runtime.greedy import Writer

SOURCE = Path(__file__).parents[2] / "src"
HIDDEN = """
import sys
for name in ("torch", "transformers", "onnxscript", "safetensors"):
    sys.modules[name] = None
from torchferry.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
PROMPTS = ("hello there", "h", "  what is your name?\n", "Grüße 🚢, über", "<|endoftext|>hello")


@pytest.fixture
def copied(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copied"))


@pytest.fixture(scope="module")
def writer(exported: Path) -> Writer:
    made = Writer.of(exported, threads=1)
    assert made is not None
    return made


@pytest.mark.parametrize("prompt", PROMPTS)
def test_it_is_the_text_that_transformers_writes(prompt: str, writer: Writer, exported: Path, runtime: Any) -> None:
    tokenizer = tokens.load(exported)
    inputs = tokens.encode(tokenizer, [prompt])
    wanted = runtime.generate(**inputs, max_new_tokens=9, do_sample=False, pad_token_id=tokenizer.pad_token_id)[0]
    wanted = wanted[inputs["input_ids"].shape[1] :]
    ids = writer.encoded(prompt, 9)
    assert ids == inputs["input_ids"][0].tolist()
    written = writer.continued(ids, 9)
    assert written == wanted.tolist()
    assert writer.decoded(written) == tokenizer.decode(wanted, skip_special_tokens=True)


def test_a_text_ends_with_a_token_that_ends_it(writer: Writer) -> None:
    ids = writer.encoded("hello there", 9)
    whole = writer.continued(ids, 9)
    short = Writer(writer.session, writer.tokenizer, frozenset({whole[3]}), writer.longest)
    assert short.continued(ids, 9) == whole[: whole.index(whole[3]) + 1]


def test_a_prompt_that_leaves_no_room_is_refused_in_the_same_words(writer: Writer, exported: Path) -> None:
    with pytest.raises(FeedError) as plain:
        writer.encoded("hello there", POSITIONS)
    with pytest.raises(FeedError) as theirs:
        tokens.encode(tokens.load(exported), ["hello there"], longest=POSITIONS, new_tokens=POSITIONS)
    assert str(plain.value) == str(theirs.value)


def test_the_command_loads_neither_torch_nor_transformers(exported: Path, tmp_path: Path) -> None:
    words = ["generate", str(exported), "hello there", "--max-new-tokens", "6"]
    env = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", HIDDEN, *words]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("hello there")
    assert main(words) == 0


MORE = {
    "generation_config.json": {"repetition_penalty": 1.3},
    "tokenizer_config.json": {"clean_up_tokenization_spaces": True},
    "torchferry.json": {"task": "speech"},
}


@pytest.mark.parametrize("name", MORE)
def test_what_documents_ask_beyond_greedy_search_is_left_to_transformers(name: str, copied: Path) -> None:
    assert Writer.of(copied, threads=1) is not None
    held = json.loads((copied / name).read_text(encoding="utf-8"))
    (copied / name).write_text(json.dumps(held | MORE[name]), encoding="utf-8")
    assert Writer.of(copied, threads=1) is None


@pytest.mark.parametrize("name", ["generation_config.json", "tokenizer_config.json", "tokenizer.json", "torchferry.json"])
def test_a_document_that_is_missing_is_left_to_transformers(name: str, copied: Path) -> None:
    (copied / name).unlink()
    assert Writer.of(copied, threads=1) is None


@pytest.mark.parametrize("said", [["GPT2Tokenizer"], {"a": 1}, 7])
def test_a_class_that_is_no_name_is_left_to_transformers(said: Any, copied: Path) -> None:
    path = copied / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": said}), encoding="utf-8")
    assert Writer.of(copied, threads=1) is None


def test_another_graph_in_the_directory_is_refused_in_words(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
    (copied / "model.onnx").write_bytes(onnx.parser.parse_model(other).SerializeToString())
    assert main(["generate", str(copied), "hello there"]) != 0
    assert "no text can be written" in capsys.readouterr().err
