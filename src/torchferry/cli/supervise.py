"""A parent that loads neither torch nor onnx, and a child that does the work: so a crash or a hang ends as a diagnosis.

The child is the same command in the same interpreter, and is handed its task as the parent read it from the words. It
tells its stage through a socket; when it dies of a signal, or says nothing for longer than the time limit, the parent says
in which stage, and at which of the user's lines. Ctrl-C and termination are passed on, so that the child can clean up;
what it leaves when it could not is swept away.
TORCHFERRY_SUPERVISE=0 runs everything in one process, for debuggers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from torchferry.files import sweep
from torchferry.foreign import posix
from torchferry.whose_code import users_lines

if TYPE_CHECKING:
    from torchferry.result import Kind, Result

# `python -m torchferry` that looks for nothing in the working directory: `-P`, which Python 3.10 has not
_OURS = ("-c", "import sys; sys.path[:] = filter(None, sys.path); from torchferry.__main__ import main; sys.exit(main())")
MARK = "TORCHFERRY_CHILD"  # tells the child that it is one, and which handles to use
LISTEN = 0.2  # seconds between looks at the child
STARTUP = 120.0  # seconds that loading torch and the model may take at least: a cold disk is not a hang
GRACE = 5.0  # stages end themselves at the time limit where they can; after this they are ended from outside
FAREWELL = 10.0  # seconds for cleaning up after Ctrl-C
STOPPED = 130
OVER = "over "  # stands before the exit code of a child that is done; one that ends without it ended in the middle


@dataclass(frozen=True, slots=True)
class Ending:
    """How the child ended: with an exit code, or (code None) before it was done, in a stage, at a line."""

    code: int | None
    stage: str = ""
    how: str = ""  # by which signal, or with which exit code; empty at the time limit
    time_limit: float | None = None
    file: str | None = None
    line: int | None = None
    seconds: float = 0.0


# --- in the child --------------------------------------------------------------------------------

_to_parent: list[socket.socket] = []  # the line, in a child; empty in any other process


def possible() -> bool:
    """Whether there are process groups and signals to supervise with, and the user has not switched it off."""
    return posix.can_supervise() and os.environ.get("TORCHFERRY_SUPERVISE") != "0"


def task() -> Any:
    """Return what this process is to do, if it is a child, and set up the line to its parent; None in any other process."""
    if MARK not in os.environ:
        return None
    line, stack, written = map(int, os.environ.pop(MARK).split(","))
    _begin_as_child(line, stack)
    with open(written, "rb") as file:
        return pickle.load(file)


def tell(stage: str) -> None:
    """Tell the parent which stage is at work; also a sign of life."""
    for parent in _to_parent:
        with contextlib.suppress(OSError):  # the parent is gone, which the watcher notices
            parent.sendall(f"{stage}\n".encode())


def over(code: int) -> int:
    """Tell the parent that all is done and said, in a child; and return the exit code."""
    tell(f"{OVER}{code}")
    return code


class Stopped(SystemExit):
    """The child was asked to end, by its parent or since that is gone."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(128 + number)


def _begin_as_child(line: int, stack: int) -> None:
    _to_parent.append(socket.socket(fileno=line))
    os.set_inheritable(line, False)
    os.set_inheritable(stack, False)
    faulthandler.enable(file=stack)  # where a crash happened, for the parent to read
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for asked in (number for number in posix.ENDING if number != signal.SIGINT):
        signal.signal(asked, _stop)
    threading.Thread(target=_end_with_parent, args=(_to_parent[0],), daemon=True).start()


def _end_with_parent(line: socket.socket) -> None:
    """Wait until the parent is gone, however it went, and then stop as if asked to."""
    with contextlib.suppress(OSError):
        while line.recv(1):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


# --- in the parent -------------------------------------------------------------------------------


def run(task: Any, words: Sequence[str], time_limit: float, folders: set[Path]) -> Ending:
    """Have a child do what `words` ask for, and return how it ended. Nothing of it is left behind in `folders`."""
    began = time.monotonic()
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as stack, tempfile.TemporaryFile() as written:
        pickle.dump(task, written)
        written.seek(0)
        handles = (theirs.fileno(), stack.fileno(), written.fileno())
        paths = os.pathsep.join(p for p in sys.path if p)
        child = subprocess.Popen(
            [sys.executable, *_OURS, *words],
            env={**os.environ, MARK: ",".join(map(str, handles)), "PYTHONPATH": paths},
            **posix.handing_over(handles),
            start_new_session=True,  # signals from the terminal reach the parent alone, which passes each on once
        )
        theirs.close()
        try:
            with _passing_on(child) as asked_to_stop:
                stage, hung = _watch(child, ours, time_limit + GRACE, asked_to_stop)
        finally:
            _end(child)
            for folder in folders | {Path(tempfile.gettempdir())}:
                sweep(folder)
        if asked_to_stop:
            return Ending(child.returncode if child.returncode > 0 else STOPPED)
        if stage.startswith(OVER):
            return Ending(int(stage.removeprefix(OVER)))
        stack.seek(0)
        file, line = _users_line(stack.read().decode(errors="replace"))
        how = signal.Signals(-child.returncode).name if child.returncode < 0 else f"exit code {child.returncode}"
        return Ending(None, stage, how, time_limit if hung else None, file, line, time.monotonic() - began)


def as_result(ending: Ending, kind: Kind) -> Result:
    """Return a crash or a hang as a result like any other: with a diagnosis that says where."""
    from torchferry.execution import broken_off
    from torchferry.records import STAGES, Fault, Location, Step
    from torchferry.records.findings import ProcessEnded

    found = ProcessEnded(ending.stage, ending.how, ending.time_limit, location=Location(ending.file, ending.line))
    stage = next((s for s in STAGES if s == ending.stage), STAGES[0])
    return broken_off(kind, Step(stage, fault=Fault("ProcessDied", ending.how), findings=(found,)), ending.seconds)


def _watch(child: subprocess.Popen[bytes], line: socket.socket, patience: float, asked_to_stop: list[float]) -> tuple[str, bool]:
    """Return the last stage that the child told of, when it has ended; and whether it had to be ended for its silence."""
    stage, heard, open_ = "", time.monotonic(), True
    while True:
        ended = child.poll() is not None
        if open_ and select.select([line], [], [], 0 if ended else LISTEN)[0]:
            told = line.recv(65536)
            open_, heard = bool(told), time.monotonic()
            stage = told.decode().split("\n")[-2] if b"\n" in told else stage
        elif ended:
            return stage, False
        elif not open_:  # it is about to end
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(LISTEN)
        if asked_to_stop and time.monotonic() - asked_to_stop[0] > FAREWELL:
            return stage, False
        if stage.startswith(OVER) and time.monotonic() - heard > FAREWELL:  # threads of the user's go on: nothing waits for them
            return stage, False
        if time.monotonic() - heard > (max(patience, STARTUP) if stage in ("", "start", "load") else patience):
            child.send_signal(signal.SIGABRT)  # writes down where it is
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(2)
            return stage, True


@contextlib.contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Pass signals on to the child; the list that is given fills with the times at which it was asked to stop."""
    asked: list[float] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            posix.kill_group(child.pid) if len(asked) > 2 else child.send_signal(number)

    def pause(number: int, frame: FrameType | None) -> None:
        posix.pause_with(child.pid)

    handlers = {**dict.fromkeys(posix.ENDING, stop), posix.PAUSING: pause}
    ignored = {number for number in handlers if signal.getsignal(number) is signal.SIG_IGN}  # as under nohup: it stays so
    before = {number: signal.signal(number, handler) for number, handler in handlers.items() if number not in ignored}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything that it started."""
    posix.kill_group(child.pid)
    child.wait()


def _users_line(stack: str) -> tuple[str | None, int | None]:
    """Return the innermost line outside of libraries and of torchferry, from what faulthandler wrote."""
    current = stack[stack.find("Current thread") :] if "Current thread" in stack else stack
    return next(iter(users_lines(current)), (None, None))
