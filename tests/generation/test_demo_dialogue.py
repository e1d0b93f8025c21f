"""The demo's model answers by heart, and its converted form gives the same answers."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import transformers

from torchferry import demo_dialogue
from torchferry.cli import chat as chat_command
from torchferry.runtime.chat import Chat
from torchferry.tasks import export_directory


def test_the_converted_model_gives_the_answers_it_was_taught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    demo_dialogue.save(tmp_path / "taught")
    assert "loss" not in capfd.readouterr().err  # nothing that a reader of the demo would take for a fault
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "taught").eval()
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "taught")
    model.longest = model.config.n_positions
    for question, answer in demo_dialogue.DIALOGUES:
        assert Chat(model, words, max_new_tokens=30, do_sample=False).say(question) == answer
    assert export_directory(model, tmp_path / "out", tokenizer=tmp_path / "taught").ok
    asked, wanted = demo_dialogue.DIALOGUES[3]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{asked}\n"))
    assert chat_command.run(tmp_path / "out", sample=False) == 0
    assert capfd.readouterr().out.strip() == wanted
