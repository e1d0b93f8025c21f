"""What is seen while the work goes on: on a terminal, in a pipe, without colours, in ASCII."""

from __future__ import annotations

import os
import pty
import subprocess
from io import BytesIO, TextIOWrapper

import pytest
from commands import command, environment, run

from torchferry.cli.screen import Screen
from torchferry.progress import Event

EVENTS = (
    Event("begin", "capture"),
    Event("end", "capture", words="non-strict", seconds=1.25),
    Event("repair", "capture", "CAP001: the branch put into the graph"),
    Event("begin", "verify"),
    Event("tick", "verify", "batch_size=3", done=1, total=4),
    Event("tick", "verify", "batch_size=4", done=3, total=4),
    Event("end", "verify", seconds=61.0, ok=False),
)


def _shown(monkeypatch: pytest.MonkeyPatch, encoding: str, **options: bool) -> str:
    stream = TextIOWrapper(BytesIO(), encoding=encoding, write_through=True)
    monkeypatch.setattr("sys.stderr", stream)
    with Screen(**options) as screen:
        for event in EVENTS:
            screen(event)
    written = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return str(written.decode(encoding))


def test_a_pipe_gets_one_line_for_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, "utf-8").splitlines() == [
        "  ✓ capture      1.2 s  non-strict",
        "  ↻ capture             repairing CAP001: the branch put into the graph",
        "  ! verify      61.0 s  3 trials",
    ]


def test_an_ascii_stream_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, "ascii").splitlines()[0] == "  + capture      1.2 s  non-strict"


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, "utf-8", quiet=True) == ""


def test_text_that_the_stream_cannot_show_is_escaped_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = TextIOWrapper(BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr("sys.stderr", stream)
    Screen().error("no file `modèle.py`")
    assert stream.buffer.getvalue() == b"error: no file `mod\\xe8le.py`\n"  # type: ignore[attr-defined]


def _in_a_terminal(*words: str, **env: str) -> str:
    """Return what a command shows when stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command(*words), stdout=theirs, stderr=theirs, env=environment(**{"TERM": "xterm-256color", **env}))
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    child.wait(timeout=60)
    os.close(ours)
    return shown.decode()


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[1m" in _in_a_terminal("explain", "--list")
    assert "\x1b[1;31m" in _in_a_terminal("explain", "no-such-code")


def test_no_color_is_respected() -> None:
    shown = _in_a_terminal("explain", "no-such-code", NO_COLOR="1")
    assert "\x1b[1;31m" not in shown
    assert "\x1b[31m" not in shown
    assert "no diagnosis is called" in shown


def test_colours_are_forced_where_they_are_asked_for() -> None:
    assert "\x1b[1m" in run("explain", "--list", FORCE_COLOR="1").stdout
    assert "\x1b" not in run("explain", "--list", FORCE_COLOR="0").stdout
    assert "\x1b" not in run("explain", "--list", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_dumb_terminal_gets_plain_text() -> None:
    shown = _in_a_terminal("explain", "--list", TERM="dumb")
    assert "\x1b" not in shown
    assert "branch-on-tensor-value" in shown


def test_a_reader_that_goes_away_changes_no_exit_code() -> None:
    listing = subprocess.Popen(command("explain", "--list"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert listing.stdout is not None
    listing.stdout.close()
    assert listing.wait(timeout=60) == 0
    assert listing.stderr is not None
    assert listing.stderr.read() == b""
    listing.stderr.close()
