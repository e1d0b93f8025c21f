"""Progress is shown without being asked for: at once to who looks, after a moment to who waits, never in the way."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from torchferry import watching as shown
from torchferry.cli.screen import Screen
from torchferry.errors import UsageError
from torchferry.progress import Event
from torchferry.watching import Patient, watching

LINES = [Event("begin", "inputs"), Event("end", "inputs", "1 input", 0.5), Event("begin", "capture")]


def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no word on progress in the environment, and no sign of pytest, which puts it there for each part of a test."""
    for name in ("PYTEST_CURRENT_TEST", shown.SETTING):
        monkeypatch.delenv(name, raising=False)


def test_under_pytest_nothing_is_shown_unless_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert "PYTEST_CURRENT_TEST" in os.environ
    with watching(None) as listener:
        assert listener is None
    with watching(True) as listener:
        assert listener is not None
        for event in LINES:
            listener(event)
    assert "inputs" in capfd.readouterr().err


class Gone(io.StringIO):
    """A stream that nobody can write to any more."""

    def write(self, text: str) -> int:
        raise OSError(9, "Bad file descriptor")


@pytest.mark.parametrize("stream", [Gone(), None])
def test_work_goes_on_where_nobody_can_be_shown_anything(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with watching(True) as listener:
        for event in LINES:
            assert listener is None or listener(event) is None


def test_who_does_not_look_sees_nothing_of_quick_work_and_all_of_slow_work(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nothing_said(monkeypatch)
    now = 0.0
    monkeypatch.setattr(shown.time, "monotonic", lambda: now)
    with watching(None) as listener:
        assert isinstance(listener, Patient)
        for event in LINES:
            listener(event)
        assert capfd.readouterr().err == ""
        now = shown.MOMENT + 1
        listener(Event("end", "capture", "non-strict", 3.0))
        told = capfd.readouterr().err.splitlines()
    assert [line.split()[1] for line in told] == ["inputs", "capture"]


def test_who_looks_is_shown_each_stage_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_said(monkeypatch)
    monkeypatch.setattr(shown, "_is_looked_at", lambda: True)
    with watching(None) as listener:
        assert isinstance(listener, Screen)


def test_a_notebook_counts_as_somebody_who_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", type(sys)("IPython"))
    assert not shown._is_looked_at()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", kind, raising=False)
    assert shown._is_looked_at()


@pytest.mark.parametrize(("said", "kind"), [("0", type(None)), ("off", type(None)), ("1", Screen)])
def test_the_environment_turns_it_off_and_on(said: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_said(monkeypatch)
    monkeypatch.setenv(shown.SETTING, said)
    with watching(None) as listener:
        assert isinstance(listener, kind)


def test_what_a_call_says_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shown.SETTING, "1")
    heard: list[Event] = []
    with watching(False) as listener:
        assert listener is None
    with watching(heard.append) as listener:
        assert listener == heard.append
    with pytest.raises(UsageError, match="progress is a function"), watching("yes"):  # type: ignore[arg-type]
        pass


def test_a_script_that_takes_its_time_tells_a_line_for_each_stage_on_stderr_and_nothing_on_stdout() -> None:
    code = "import torchferry.watching as w; w.MOMENT = 0.0; import torch, torchferry as t; "
    code += "t.export(torch.nn.ReLU(), (torch.ones(2, 3),), budget=t.Budget(trials=2, mutants=0))"
    env = {k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", shown.SETTING)}
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, env=env)
    assert ran.stdout == ""
    assert [line.split()[1] for line in ran.stderr.splitlines()] == ["inputs", "capture", "translate", "check", "verify"]
