"""A parent that loads neither torch nor onnx, and a child that does the work: so a crash or a hang ends as a diagnosis.

The child is the same command in the same interpreter. It tells its stage through a socket; when it dies of a signal, or
says nothing for longer than the time limit, the parent says in which stage, and at which of the user's lines. Ctrl-C
and termination are passed on, so that the child can clean up; what it leaves when it could not is swept away.
TORCHFERRY_SUPERVISE=0 runs everything in one process, for debuggers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import select
import shutil
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
from typing import IO, TYPE_CHECKING

from torchferry.files import PREFIX

if TYPE_CHECKING:
    from torchferry.result import Result

MARK = "TORCHFERRY_CHILD"  # tells the child that it is one, and which handles to use
LISTEN = 0.2  # seconds between looks at the child
GRACE = 5.0  # stages end themselves at the time limit where they can; after this they are ended from outside
FAREWELL = 10.0  # seconds for cleaning up after Ctrl-C
STOPPED = 130


@dataclass(frozen=True, slots=True)
class Ending:
    """How the child ended: with an exit code, or (code None) by a signal or the time limit, in a stage, at a line."""

    code: int | None
    stage: str = ""
    signal: str = ""
    time_limit: float | None = None
    file: str | None = None
    line: int | None = None


# --- in the child --------------------------------------------------------------------------------

_to_parent: socket.socket | None = None


def possible() -> bool:
    """Whether there are process groups and signals to supervise with, and the user has not switched it off."""
    return os.name == "posix" and os.environ.get("TORCHFERRY_SUPERVISE") != "0"


def is_child() -> bool:
    """Whether this process is the one that does the work; sets up the line to its parent when first asked."""
    if _to_parent is None and MARK in os.environ:
        _begin_as_child(*map(int, os.environ.pop(MARK).split(",")))
    return _to_parent is not None


def tell(stage: str) -> None:
    """Tell the parent which stage is at work; also a sign of life."""
    if _to_parent is not None:
        with contextlib.suppress(OSError):  # the parent is gone, which the watcher notices
            _to_parent.sendall(f"{stage}\n".encode())


def _begin_as_child(line: int, stack: int) -> None:
    global _to_parent
    _to_parent = socket.socket(fileno=line)
    os.set_inheritable(line, False)
    os.set_inheritable(stack, False)
    faulthandler.enable(file=stack)  # where a crash happened, for the parent to read
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    threading.Thread(target=_end_with_parent, args=(_to_parent,), daemon=True).start()


def _end_with_parent(line: socket.socket) -> None:
    """Wait until the parent is gone, however it went, and then stop as if asked to."""
    with contextlib.suppress(OSError):
        while line.recv(1):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


# --- in the parent -------------------------------------------------------------------------------


def run(words: Sequence[str], time_limit: float, folders: set[Path]) -> Ending:
    """Run the command `words` in a child, and return how it ended. Nothing of it is left behind in `folders`."""
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as stack:
        handles = (theirs.fileno(), stack.fileno())
        paths = os.pathsep.join(p for p in sys.path if p)
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "torchferry", *words],
            env={**os.environ, MARK: ",".join(map(str, handles)), "PYTHONPATH": paths},
            pass_fds=handles,
            start_new_session=True,  # signals from the terminal reach the parent alone, which passes each on once
        )
        theirs.close()
        try:
            with _passing_on(child) as asked_to_stop:
                stage, hung = _watch(child, ours, time_limit + GRACE, asked_to_stop)
        finally:
            _end(child)
            _sweep(child.pid, folders | {Path(tempfile.gettempdir())})
        return _ending(child.returncode, stage, time_limit if hung else None, bool(asked_to_stop), stack)


def as_result(ending: Ending, kind: str) -> Result:
    """Return a crash or a hang as a result like any other: with a diagnosis that says where."""
    from torchferry.records import STAGES, Case, Diagnosis, Fault, History, Job, Location, Step
    from torchferry.result import Result

    during = f" in {ending.stage}" if ending.stage else ""
    if ending.time_limit is not None:
        title = f"nothing happened for {ending.time_limit:g} s{during}"
        message = "the work was ended at the time limit; torch or the model itself hangs, or needs longer"
        help = "allow it longer with --time-limit SECONDS, or try a smaller example"
    else:
        title = f"the process died{during}"
        message = f"torch, or native code that the model calls, ended the process with {ending.signal}"
        help = "it is a fault of the library, not of your model's mathematics: try other versions (`torchferry doctor` shows them)"
        if ending.signal == "SIGKILL":
            message, help = "the process was killed from outside; most often the system ran out of memory", "free some memory, or try a smaller example"
    location = Location(ending.file, ending.line)
    found = Diagnosis("", message, help, location, title=title, slug="process-died")
    stage = next((s for s in STAGES if s == ending.stage), STAGES[0])
    case = Case(Job(), (Step(stage, fault=Fault("ProcessDied", message)),), (found,))
    return Result(kind, History((case,), case))  # type: ignore[arg-type]


def _watch(child: subprocess.Popen[bytes], line: socket.socket, patience: float, asked_to_stop: list[float]) -> tuple[str, bool]:
    """Return the last stage that the child told of, when it has ended; and whether it had to be ended for its silence."""
    stage, heard, open_ = "", time.monotonic(), True
    while child.poll() is None:
        if open_ and select.select([line], [], [], LISTEN)[0]:
            told = line.recv(65536)
            open_, heard = bool(told), time.monotonic()
            stage = told.decode().split("\n")[-2] if b"\n" in told else stage
        elif not open_:
            time.sleep(LISTEN)
        if asked_to_stop and time.monotonic() - asked_to_stop[0] > FAREWELL:
            return stage, False
        if time.monotonic() - heard > patience:
            child.send_signal(signal.SIGABRT)  # writes down where it is
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(2)
            return stage, True
    return stage, False


@contextlib.contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Pass signals on to the child; the list that is given fills with the times at which it was asked to stop."""
    asked: list[float] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL) if len(asked) > 2 else child.send_signal(number)

    def pause(number: int, frame: FrameType | None) -> None:
        os.killpg(child.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(child.pid, signal.SIGCONT)

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: stop, signal.SIGTSTP: pause}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _sweep(pid: int, folders: set[Path]) -> None:
    for folder in folders:
        for left in folder.glob(f"{PREFIX}{pid}-*"):
            shutil.rmtree(left, ignore_errors=True)


def _ending(code: int, stage: str, time_limit: float | None, stopped: bool, stack: IO[bytes]) -> Ending:
    if stopped:
        return Ending(code if code > 0 else STOPPED)
    if code >= 0 and time_limit is None:
        return Ending(code)
    stack.seek(0)
    file, line = _users_line(stack.read().decode(errors="replace"))
    name = signal.Signals(-code).name if code < 0 else ""
    return Ending(None, stage, name, time_limit, file, line)


def _users_line(stack: str) -> tuple[str | None, int | None]:
    """Return the innermost line outside of libraries and of torchferry, from what faulthandler wrote."""
    ours = str(Path(__file__).parents[1])
    current = stack[stack.find("Current thread") :] if "Current thread" in stack else stack
    for file, line in re.findall(r'File "(.+?)", line (\d+)', current):
        library = "site-packages" in file or "dist-packages" in file or file.startswith((ours, "<", os.path.dirname(os.__file__)))
        if not library:
            return file, int(line)
    return None, None
