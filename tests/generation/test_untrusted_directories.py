"""A directory from elsewhere is data: what it says beyond what torchferry writes there is refused, and nothing comes of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import torchferry
from torchferry.cli.main import main
from torchferry.errors import FileRefused
from torchferry.generation import CausalLM
from torchferry.runtime.chat import Chat
from torchferry.tasks import verify_directory


@pytest.fixture
def copied(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("mine")
    return Path(shutil.copytree(exported, tmp_path / "out"))


def changed(path: Path, change: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a library": ({"settings": {"libraries": ["./evil.so"]}}, "`settings.libraries` is not among what may stand there"),
    "a file to write": ({"settings": {"optimised_to": "victim"}}, "`settings.optimised_to` is not among"),
    "any option": ({"settings": {"config": {"session.collect_node_memory_stats_to_file": "victim"}}}, "`settings.config` is not"),
    "another folder": ({"settings": {"data_folder": "/"}}, "`settings.data_folder` is not among"),
    "threads": ({"settings": {"threads": 10**6}}, "`settings.threads` is not among"),
    "a level that is none": ({"settings": {"level": "most"}}, "`settings.level` must be one of"),
    "optimisers that are no names": ({"settings": {"disabled": ["a/../b"]}}, r"`settings.disabled\[0\]` is out of range"),
    "settings that are none": ({"settings": []}, "`settings` is a list, and must be an object"),
    "a length below nothing": ({"longest": -1}, "`longest` is out of range"),
    "a length beyond all": ({"longest": 10**30}, "`longest` is out of range"),
    "a length in words": ({"longest": "48"}, "`longest` is text, and must be a whole number or null"),
    "a length that is no number": ({"longest": float("nan")}, "`longest` is a number, and must be a whole number or null"),
    "a yes": ({"longest": True}, "`longest` is true or false"),
    "a graph elsewhere": ({"graphs": ["../../model.onnx"]}, "`graphs` is not among"),
    "a measurement that is none": ({"quantised": {"precision": "int8"}}, r"`quantised\.positions` is missing"),
}


@pytest.mark.parametrize("what", RECORDS)
def test_what_torchferry_json_may_not_say_is_refused(
    what: str, copied: Path, model: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    change, words = RECORDS[what]
    changed(copied / "torchferry.json", change)
    before = {p: p.read_bytes() for p in copied.parent.rglob("*") if p.is_file()}
    with pytest.raises(FileRefused, match=rf"^CHK032: `.*torchferry\.json` is refused: {words}"):
        CausalLM.from_pretrained(copied)
    with pytest.raises(FileRefused, match=words):
        torchferry.verify(model, copied)
    assert main(["generate", str(copied), "hello"]) == 2
    assert "CHK032" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in copied.parent.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", "[" * 100_000, '{"task": 1' + "0" * 5000 + "}", '{"task": "a", "task": "b"}']
)
def test_what_is_no_record_at_all_is_refused(text: str, copied: Path) -> None:
    (copied / "torchferry.json").write_text(text)
    with pytest.raises(FileRefused, match="is refused"):
        CausalLM.from_pretrained(copied)


def test_a_record_that_is_no_text_or_has_no_end_is_refused(copied: Path) -> None:
    (copied / "torchferry.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileRefused, match="cannot be read as text"):
        CausalLM.from_pretrained(copied)
    with (copied / "torchferry.json").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(FileRefused, match="larger than 64 MB"):
        CausalLM.from_pretrained(copied)


def test_a_task_that_there_is_not_is_refused(copied: Path, model: Any) -> None:
    changed(copied / "torchferry.json", {"task": "anything"})
    with pytest.raises(FileRefused, match="names no task"):
        verify_directory(model, copied)


def test_libraries_come_from_the_caller(copied: Path) -> None:
    with pytest.raises(Exception, match=r"nothing\.so"):
        CausalLM.from_pretrained(copied, libraries=["./nothing.so"])


CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "code to be downloaded": ({"attn_implementation": "evil/kernel"}, "names code that would be downloaded"),
    "such code for a part": ({"text_config": {"_attn_implementation": {"": "evil/kernel@main"}}}, "names code that would be"),
    "a class that is no name": ({"architectures": ["../x"]}, "must be a list of names of classes"),
    "classes that are no list": ({"architectures": {"a": 1}}, "must be a list of names of classes"),
    "a type that is no text": ({"model_type": ["gpt2"]}, "`model_type` must be text"),
    "a number in words": ({"n_embd": "many"}, "transformers cannot read it"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_what_a_config_may_not_say_is_refused(what: str, copied: Path) -> None:
    change, words = CONFIGS[what]
    changed(copied / "config.json", change)
    with pytest.raises(FileRefused, match=rf"config\.json` is refused: .*{words}"):
        CausalLM.from_pretrained(copied)


def test_a_generation_config_that_transformers_cannot_read_is_refused(copied: Path) -> None:
    for text in ("{", "[1]", '{"max_new_tokens": -1}', '{"watermarking_config": 3}'):
        (copied / "generation_config.json").write_text(text)
        with pytest.raises(FileRefused, match=r"generation_config\.json` is refused"):
            CausalLM.from_pretrained(copied)


TEMPLATES = {
    "out of the sandbox": ("{{ ''.__class__.__mro__ }}", "SecurityError"),
    "to the operating system": (
        "{{ cycler.__init__.__globals__.os.system('touch made') }}{{ lipsum.__globals__['os'].system('touch made') }}", "Error"
    ),
    "a syntax error": ("{% for %}", "TemplateSyntaxError"),
    "a refusal of its own": ("{{ raise_exception('only twice') }}", "TemplateError: only twice"),
    "what is not there": ("{{ messages[7]['content'] }}", "UndefinedError"),
    "no end": ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "TookTooLong"),
    "too much": ("{{ 'a' * 10**12 }}", "MemoryError"),
    "division by nothing": ("{{ 1 // 0 }}", "ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.parametrize("what", TEMPLATES)
def test_a_chat_template_runs_in_a_sandbox_and_its_failures_are_words(
    what: str, runtime: Any, copied: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, words = TEMPLATES[what]
    monkeypatch.setattr(tokenizer, "chat_template", template)
    monkeypatch.setattr("torchferry.runtime.chat.PATIENCE", 0.5)
    with pytest.raises(FileRefused, match=rf"^CHK032: `chat_template` is refused: .*{words}"):
        Chat(runtime, tokenizer, max_new_tokens=4).say("hello")
    assert not (copied.parent / "made").exists()
