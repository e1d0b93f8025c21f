"""The one escape for each medium, by itself: nothing odd comes out, nothing is lost, and twice is once."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchferry import escape
from torchferry.errors import FeedError, MissingDependency, UsageError
from torchferry.progress import log
from torchferry.runtime.session import CoercionWarning, SessionError, with_words

TEXTS = st.text(st.characters(exclude_categories=())) | st.text("ab \n\r\t\x1b\x9b\u202e\u2028\udcff`\\:#[%|<&")
EVIL = "a\x1b[31m\u202e`\n::error file=x::y"


@given(TEXTS)
def test_what_comes_out_acts_on_nothing(text: str) -> None:
    for shown in (escape.line(text), escape.prose(text), escape.visible(text), escape.html(text), escape.written_json([text])):
        assert {c for c in shown if not c.isprintable()} <= {"\n", "\t"}
        assert not [line for line in shown.split("\n") if line.strip().startswith("::")]
        assert not re.search(r"##\w*\[", shown)
        shown.encode()
    assert escape.line(text).isprintable()


@given(TEXTS)
def test_twice_is_once(text: str) -> None:
    for shown in (escape.line, escape.prose, escape.visible, escape.spoken):
        assert shown(shown(text)) == shown(text)


@given(TEXTS)
def test_json_says_the_same(text: str) -> None:
    for options in ({}, {"indent": 2, "ensure_ascii": False}):
        assert json.loads(escape.written_json({text: [text]}, **options)) == {text: [text]}


@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_honest_names_stay_as_they_are(text: str) -> None:
    if not re.search(r"^::|##\w*\[", text):
        assert escape.line(text) == escape.prose(text) == escape.visible(text) == escape.spoken(text) == text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is installed")
def test_a_word_of_a_command_is_the_same_word_in_a_shell() -> None:
    for word in (
        "model.onnx",
        "a b",
        "it's",
        "a\x1b\n\t'\\x41\u202e.onnx",
        "caf\xe9\u2028\U000e0001",
        "\udcff.onnx",
        "$HOME `id`\x07",
    ):
        said = subprocess.run(["bash", "-c", f"printf %s {escape.shell(word)}"], capture_output=True, check=True).stdout
        assert said == word.encode("utf-8", "surrogateescape")
        assert escape.shell(word).isprintable()


def test_names_are_shown_and_not_dropped() -> None:
    assert escape.line("a\x1b[31m\u202e\n\x9b\udcff") == r"a\x1b[31m\u202e\n\x9b\udcff"
    assert escape.prose("input `a\nb` is\nodd") == "input `a\\nb` is\nodd"
    assert escape.visible("  ::error::x ##[group]") == r"  \x3a:error::x \x23#[group]"


def test_a_name_of_a_file_is_shown_whole_and_one_without_end_is_not() -> None:
    assert escape.line("n" * 255) == "n" * 255
    assert escape.prose(f"`{'n' * 255}` is there") == f"`{'n' * 255}` is there"
    for endless in ("n" * 1_000_000, "n m " * 250_000):
        for shown in (
            escape.line(endless),
            escape.prose(endless),
            escape.prose(f"`{endless}` is there"),
            escape.prose(f"{endless}\n" * 3),
        ):
            assert len(shown) < 100_000
            assert "characters]" in shown


def test_a_models_words_keep_their_scripts_and_lose_their_controls() -> None:
    emoji, persian = "\U0001f469\u200d\U0001f4bb \u2764\ufe0f", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u200f(x)"
    assert escape.spoken(f"{emoji}\n\t{persian}") == f"{emoji}\n\t{persian}"
    assert escape.spoken("\x1b]0;x\x07\r\x9b\u202e\udc80") == r"\x1b]0;x\x07\r\x9b\u202e\udc80"


@pytest.mark.parametrize("kind", [UsageError, FeedError, MissingDependency, SessionError, CoercionWarning])
def test_what_is_printed_of_an_error_or_a_warning_is_escaped(kind: type[Exception]) -> None:
    assert str(kind(f"no `{EVIL}` here")) == "no `a\\x1b[31m\\u202e`\n\\x3a:error file=x::y` here"


def test_an_error_of_another_library_is_escaped_with_our_words() -> None:
    told = with_words(RuntimeError(f"Name:'{EVIL}'"), "")
    assert "\x1b" not in str(told)
    assert isinstance(told, RuntimeError)


def test_a_warning_is_escaped_where_python_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *told: print(
            warnings.formatwarning(*told[:4])
        )  # as Python does, where pytest does not look
        warnings.warn(f"RUN004: `{EVIL}` was cast", CoercionWarning, stacklevel=1)
    assert "RUN004: `a\\x1b" in capsys.readouterr().out


def test_the_log_is_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "torchferry"):
        log.info("while loading `%s`", EVIL)
    assert caplog.messages == ["while loading `a\\x1b[31m\\u202e`\n\\x3a:error file=x::y`"]
