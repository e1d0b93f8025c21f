"""A conversation: DialoGPT's turns, history cut to the position table, answers streamed."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from torchferry.cli import chat as chat_command
from torchferry.cli import generate as generate_command
from torchferry.errors import FeedError, UsageError
from torchferry.runtime.chat import Chat


def chat(runtime: Any, tokenizer: Any, **options: Any) -> Chat:
    return Chat(runtime, tokenizer, **{"max_new_tokens": 6, "do_sample": False, **options})


def test_turns_are_joined_by_the_eos_token(runtime: Any, tokenizer: Any) -> None:
    talk = chat(runtime, tokenizer)
    answer = talk.say("hello there")
    assert talk.turns == ["hello there", answer]
    eos = tokenizer.eos_token_id
    expected = [*tokenizer("hello there")["input_ids"], eos, *tokenizer(answer)["input_ids"], eos]
    assert talk._encoded(talk.turns)[0].tolist() == expected


def test_answers_are_those_of_the_eager_model_in_the_same_format(model: Any, runtime: Any, tokenizer: Any) -> None:
    ours, theirs = chat(runtime, tokenizer), chat(_with_end(model), tokenizer)
    for words in ("hello there", "how are you", "the cat"):
        assert ours.say(words) == theirs.say(words)


def test_answers_are_streamed_piece_by_piece(runtime: Any, tokenizer: Any) -> None:
    pieces: list[str] = []
    answer = chat(runtime, tokenizer).say("hello there", pieces.append)
    assert "".join(pieces) == answer
    assert len(pieces) > 1


def test_the_oldest_turns_are_forgotten_when_there_is_no_more_room(runtime: Any, tokenizer: Any) -> None:
    talk = chat(runtime, tokenizer)
    for _ in range(8):
        talk.say("the cat sat on the mat")
    ids = talk._history()
    assert ids.shape[1] <= runtime.longest - talk.max_new_tokens
    assert ids.shape[1] > runtime.longest - talk.max_new_tokens - 30, "no more is forgotten than must be"


def test_a_single_turn_beyond_the_table_is_refused(runtime: Any, tokenizer: Any) -> None:
    with pytest.raises(FeedError, match="48 positions, of which 6 are kept"):
        chat(runtime, tokenizer).say("the cat sat on the mat " * 20)


def test_answers_that_leave_no_room_for_a_question_are_refused_at_once(runtime: Any, tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="48 positions, and 47 kept for each answer leave no room"):
        chat(runtime, tokenizer, max_new_tokens=47)


def test_the_command_answers_every_line(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello there\n\nhow are you\n"))
    assert chat_command.run(exported, max_new_tokens=4, sample=False) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_an_interrupt_stops_the_answer_and_not_the_chat(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = io.StringIO("hello there\nhow are you\n")
    lines.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", lines)
    asked: list[list[str]] = []

    def say(self: Chat, words: str, heard: Any) -> str:
        self.turns.append(words)
        asked.append(list(self.turns))
        if len(asked) == 1:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(Chat, "say", say)
    assert chat_command.run(exported, max_new_tokens=6, sample=False) == 0
    assert asked == [["hello there"], ["how are you"]], "a question whose answer was stopped is forgotten"


def test_the_generate_command_continues_a_prompt(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate_command.run(exported, "hello there", max_new_tokens=5) == 0
    assert capsys.readouterr().out.startswith("hello there")


def test_the_generate_command_refuses_what_is_too_long(exported: Path) -> None:
    with pytest.raises(FeedError, match="at most"):
        generate_command.run(exported, "hello there", max_new_tokens=50)


OWN_SETTINGS = {"num_beams": 3, "early_stopping": True, "return_dict_in_generate": True, "output_scores": True}


def test_a_models_own_settings_do_not_stand_in_the_way_of_a_chat(
    runtime: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = chat(runtime, tokenizer).say("hello there")
    for name, value in OWN_SETTINGS.items():
        monkeypatch.setattr(runtime.generation_config, name, value)
    assert chat(runtime, tokenizer).say("hello there") == wanted


def test_a_models_own_settings_do_not_change_what_the_generate_command_prints(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(exported, tmp_path / "out")
    settings = json.loads((exported / "generation_config.json").read_text())
    (tmp_path / "out" / "generation_config.json").write_text(json.dumps({**settings, "return_dict_in_generate": True}))
    for place in (exported, tmp_path / "out"):
        assert generate_command.run(place, "hello there", max_new_tokens=5) == 0
    one, other = capsys.readouterr().out.splitlines()
    assert one == other


def _with_end(model: Any) -> Any:
    model.longest = model.config.n_positions
    return model
