"""Calls that may end the process, made in one that may be ended: a fork of ours, whose death is an answer.

A kernel that is given sizes nobody feeds may write beyond its memory: torch checks most of what it is given, an extension of
the user's may check nothing. A fork has the model as it is and costs milliseconds; it answers one question after the other.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any, Generic, TypeVar

import torch

from torchferry.foreign import posix

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Died(Exception):
    """The process that was asked is no more; the text says how it ended."""


class Apart(Generic[Question, Answer]):
    """A function that is called in a fork of this process. Questions and answers are pickled; what it raises is raised here.

    Use it as a context manager, after which the fork is gone.
    """

    def __init__(self, function: Callable[[Question], Answer], patience: float) -> None:
        self._function, self._patience = function, patience
        self._pid: int | None = None
        self._pipe: Connection | None = None
        self.seconds = 0.0  # of the processor, that answers have taken so far

    def __enter__(self) -> Apart[Question, Answer]:
        return self

    def __exit__(self, *raised: object) -> None:
        self._end()

    def ask(self, question: Question, patience: float | None = None) -> Answer:
        """Return the function's answer, or raise Died: the process ended, or gave none for too long and was ended."""
        patience = self._patience if patience is None else patience
        if self._pid is None:
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send(question)
            if not self._pipe.poll(patience):
                raise Died(f"no answer within {patience:g} s")
            answer, error, seconds = self._pipe.recv()
        except (EOFError, OSError):
            raise Died(self._death()) from None
        except BaseException:  # no answer, or Ctrl-C in the middle: the pipe is out of step
            self._end()
            raise
        self.seconds += seconds
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]

    def _start(self) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pipe, self._pid = ours, posix.fork()
        if self._pid == 0:
            ours.close()
            _serve(self._function, theirs)
        theirs.close()  # so that the child's death reads as the end of the pipe

    def _death(self) -> str:
        assert self._pid is not None
        code = posix.exit_code(self._pid)
        self._pid = None
        self._end()
        if code is None:
            return "the process ended"
        return (
            f"it ends the process with {signal.Signals(-code).name}" if code < 0 else f"it ends the process with exit code {code}"
        )

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._pid is not None:
            posix.kill(self._pid)
            posix.exit_code(self._pid)
        self._pid = self._pipe = None


def can_fork(module: torch.nn.Module) -> bool:
    """Whether a fork of this process can run a model: on the processor, since no device outlives a fork."""
    devices = {t.device.type for t in (*module.parameters(), *module.buffers())}
    return posix.can_fork() and devices <= {"cpu", "meta"} and not torch.cuda.is_initialized()


def _serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer questions until nobody asks any more; this is the fork, which never returns."""
    try:
        for number in posix.ENDING:
            signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        torch.set_num_threads(1)  # the threads of the process that was forked are not here
        faulthandler.disable()
        _silence()
        while True:
            question, began = pipe.recv(), time.process_time()
            answer, error = None, None
            try:
                answer = function(question)
            except Exception as raised:  # any model may raise anything
                error = RuntimeError(f"{type(raised).__name__}: {raised}")
            _find_damage()
            pipe.send((answer, error, time.process_time() - began))
    except BaseException:  # the pipe was closed, or something ends this process: it must not run on in what was ours
        pass
    finally:
        posix.end_now()  # nothing that was registered for our own end is for this one


def _silence() -> None:
    """Let what the allocator says when it finds damage go nowhere: the answer tells it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _find_damage() -> None:
    """Let the allocator look through what it holds: it ends the process where something was written that is not memory's own."""
    gc.collect(0)
    posix.give_back_memory()
