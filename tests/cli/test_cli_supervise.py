"""Crashes, hangs and Ctrl-C: each ends with words and an exit code, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import command, environment, run

from torchferry.cli.supervise import Ending, as_result
from torchferry.report import render
from torchferry.whose_code import is_users


def _left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name not in ("models.py", "__pycache__"))


def test_a_crash_ends_as_a_diagnosis_at_the_users_line(here: Path) -> None:
    ended = run("export", "models.py:crash", "-o", "m.onnx", "--format", "json", cwd=here)
    assert ended.returncode == 3
    (problem,) = json.loads(ended.stdout)["problems"]
    assert "SIGSEGV" in problem["message"]
    assert (problem["code"], problem["title"]) == ("RUN902", "the process died in inputs")
    assert problem["place"]["source"].strip() == "return ctypes.string_at(0)"
    assert _left(here) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("os._exit(0)", "RUN902"),
        ("sys.exit(0)", "INP001"),
        ("raise GeneratorExit", "INP001"),
        ("[os.close(i) for i in range(3)] and os._exit(1)", "RUN902"),
    ],
)
def test_a_model_that_ends_the_process_is_no_success(body: str, code: str, tmp_path: Path) -> None:
    source = f"import os, sys, torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
    (tmp_path / "models.py").write_text(source)
    words = ("export", "models.py:Model", "--input", "x:2x3", "-o", "m.onnx", "--format", "json")
    ended = run(*words, cwd=tmp_path)
    assert ended.returncode == 3
    assert [p["code"] for p in json.loads(ended.stdout)["problems"]] == [code]
    assert "Traceback" not in ended.stderr
    assert _left(tmp_path) == []


def test_code_that_ends_the_process_while_the_model_is_made_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("import sys\ndef model():\n    sys.exit(0)\n")
    ended = run("export", "models.py:model", "-o", "m.onnx", cwd=tmp_path)
    assert ended.returncode == 3
    assert "error[INP016]" in ended.stdout
    assert "SystemExit" in ended.stdout


def test_a_thread_that_goes_on_does_not_hold_the_command_up(tmp_path: Path) -> None:
    thread = "threading.Thread(target=time.sleep, args=(1000,)).start()"
    (tmp_path / "models.py").write_text(f"import threading, time\ndef model():\n    {thread}\n    return 3\n")
    assert run("export", "models.py:model", "-o", "m.onnx", cwd=tmp_path).returncode == 2


def test_a_hang_in_native_code_ends_at_the_time_limit(here: Path) -> None:
    ended = run("export", "models.py:hang", "-o", "m.onnx", "--time-limit", "10", cwd=here)
    assert ended.returncode == 3
    assert "nothing happened for 10 s in inputs" in ended.stdout
    assert "a deadlock in native code" in ended.stdout
    assert _left(here) == []


def _started(here: Path) -> subprocess.Popen[str]:
    """Start an export over an older file, and return once it is in the middle of its work."""
    (here / "m.onnx").write_text("an older file")
    words = command("export", "models.py:slow", "-o", "m.onnx")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, and that inherited, in a shell's background
    child = subprocess.Popen(words, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert child.stderr is not None
    while "inputs" not in child.stderr.readline():
        assert child.poll() is None
    return child


def _descendants(folder: Path) -> list[str]:
    """Return the processes that still work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder.resolve()) and process.name != str(os.getpid()):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for left processes in /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_stopped_command_leaves_the_old_file_and_nothing_else(sent: signal.Signals, code: int, here: Path) -> None:
    child = _started(here)
    child.send_signal(sent)
    out, err = child.communicate(timeout=60)
    assert child.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert err.count("stopped") == (sent == signal.SIGINT), "said once, by the parent"
    deadline = time.monotonic() + 30  # after SIGKILL nobody waits: the child notices by itself that its parent is gone
    while (_descendants(here) or _left(here) != ["m.onnx"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _descendants(here) == []
    assert _left(here) == ["m.onnx"]
    assert (here / "m.onnx").read_text() == "an older file"


def test_the_whole_command_can_be_run_in_one_process(here: Path) -> None:
    ended = run("export", "models.py:crash", "-o", "m.onnx", cwd=here, TORCHFERRY_SUPERVISE="0")
    assert ended.returncode == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Ending(None, "capture", "SIGSEGV"), "the process died in capture"),
        (Ending(None, "verify", "SIGKILL"), "ran out of memory"),
        (Ending(None, "load", "SIGABRT", 2.5), "nothing happened for 2.5 s in load"),
        (Ending(None, "verify", "exit code 0"), "ended the process with exit code 0, before the work was done"),
    ],
)
def test_each_ending_has_its_words(ending: Ending, words: str) -> None:
    written = render(as_result(ending, "export"), "text")
    assert words in written
    assert "the work broke off" in written


def test_a_users_file_is_told_from_a_library() -> None:
    assert is_users("/home/somebody/model.py")
    assert not is_users(json.__file__)
    assert not is_users("/x/site-packages/torch/nn/functional.py")
    assert not is_users("<frozen runpy>")
