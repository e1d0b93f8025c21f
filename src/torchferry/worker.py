"""Sessions that cannot take the process down with them: a child process in which onnxruntime opens and runs models.

onnxruntime does crash and hang on odd graphs, so models that nobody has run yet are opened there. The child's death or
silence comes back as a `Fault`, like any other answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from torchferry import memory
from torchferry.foreign import posix
from torchferry.records import Fault

if TYPE_CHECKING:
    import numpy as np

GRACE = 1.0  # seconds for a run that nobody wants any more; after them its process is ended, which costs no more

DEATHS = ("TimeLimit", "ProcessDied")  # what a fault is called where the child was ended, or ended: once is enough


class Worker:
    """A child process that opens and runs models. A crash or a hang in it comes back as a Fault; then a new one is started.

    Use it as a context manager. Answers are values or Faults; it never raises for what a model does.
    It may take `memory_limit` bytes, and never more than a share of what is free when it starts.
    """

    def __init__(self, time_limit: float = 600.0, memory_limit: int | None = None) -> None:
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._said: IO[bytes] | None = None  # what it wrote as it died
        self._room: int | None = None
        self._keys = count()
        self._opened: dict[str, dict[str, Any]] = {}  # what to open again after a death
        self._alive_keys: set[str] = set()
        self._begun: tuple[str, str, str] | None = None  # verb, key and path of what was asked ahead and not yet answered

    def begin_open(self, path: str | Path) -> None:
        """Begin to open the model at `path`, for an `open` that will follow; there is other work to do meanwhile."""
        self._dismiss()
        key = str(next(self._keys))
        if self._sent("open", key, str(path), {}):
            self._begun = ("open", key, str(path))

    def open(self, path: str | Path, **options: Any) -> str | Fault:
        """Return a key for a session on the model at `path` (options as in `ort.session`), or what stopped it."""
        if self._begun is not None and self._begun[::2] == ("open", str(path)) and not options:
            key, answer = self._begun[1], self._answer("open")
        else:
            key = str(next(self._keys))
            answer = self._ask("open", key, str(path), options)
        if isinstance(answer, Fault):
            return answer
        self._opened[key] = {"path": str(path), **options}
        self._alive_keys.add(key)
        return key

    def run(
        self, key: str, feeds: Mapping[str, np.ndarray], outputs: Sequence[str] | None = None, *, keep: bool = True
    ) -> list[Any] | Fault:
        """Return the outputs of a run, or what stopped it. Without `keep` only whether it ran: outputs may be large."""
        message = ("run", key, dict(feeds), None if outputs is None else list(outputs), keep)
        return self._revived(key) or self._ask(*message)

    def begin_run(self, key: str, feeds: Mapping[str, np.ndarray]) -> Fault | None:
        """Begin a run, to be ended by `end_run`, or given up by asking for something else; return what stopped it already."""
        self._dismiss()
        if (stopped := self._revived(key)) is not None:
            return stopped
        if not self._sent("run", key, dict(feeds), None, True):
            return self._death("run")
        self._begun = ("run", key, "")
        return None

    def end_run(self) -> list[Any] | Fault:
        """Return the outputs of the run that was begun, or what stopped it."""
        assert self._begun is not None, "no run was begun"
        return self._answer("run")  # type: ignore[no-any-return]

    def _revived(self, key: str) -> Fault | None:
        """Open a session again if the process that held it died in another model's run; return what stopped that."""
        if key in self._alive_keys:
            return None
        again = dict(self._opened[key])
        answer = self._ask("open", key, again.pop("path"), again)
        if isinstance(answer, Fault):
            return answer
        self._alive_keys.add(key)
        return None

    def evaluate(self, path: str | Path, feeds: Mapping[str, np.ndarray]) -> list[Any] | Fault:
        """Return what the standard's own evaluator gives for a model that no runtime need know, or what stopped it."""
        return self._ask("evaluate", "", str(path), dict(feeds))  # type: ignore[no-any-return]

    def inputs(self, key: str) -> list[tuple[str, str, tuple[Any, ...]]]:
        """Return the name, type and shape of each input that an open session declares."""
        answer = self._ask("inputs", key)
        return [] if isinstance(answer, Fault) else answer

    def version(self) -> str:
        """Return the version of onnxruntime; the child has it loaded, we need not."""
        answer = self._ask("version", "")
        return "" if isinstance(answer, Fault) else str(answer)

    def close(self, key: str) -> None:
        """Give back the memory of a session."""
        self._opened.pop(key, None)
        if key in self._alive_keys:
            self._alive_keys.discard(key)
            self._ask("close", key)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _ask(self, *message: Any) -> Any:
        self._dismiss()
        return self._answer(message[0]) if self._sent(*message) else self._death(message[0])

    def _dismiss(self) -> None:
        """Take the answer to what was begun: it comes first, and nobody wants it any more. A run is not waited for long."""
        if self._begun is None:
            return
        verb, key, _ = self._begun
        assert self._pipe is not None
        if verb == "run" and not self._pipe.poll(GRACE):
            self._end()
        elif not isinstance(self._answer(verb), Fault) and verb == "open":
            self._ask("close", key)

    def _sent(self, *message: Any) -> bool:
        if self._process is None:
            self._start()
        assert self._pipe is not None
        try:
            self._pipe.send(message)
        except OSError:
            return False
        except BaseException:  # Ctrl-C in the middle of a question: the pipe is out of step
            self._end()
            raise
        return True

    def _answer(self, verb: str) -> Any:
        assert self._pipe is not None
        self._begun = None
        try:
            if not self._pipe.poll(self.time_limit):
                self._end()
                return Fault("TimeLimit", f"onnxruntime gave no answer within {self.time_limit:g} s ({verb})")
            fault, answer = self._pipe.recv()
        except (EOFError, OSError):
            return self._death(verb)
        except BaseException:  # Ctrl-C in the middle of an answer: the pipe is out of step
            self._end()
            raise
        return answer if fault is None else Fault(fault[0], self._with_room(fault[1] or fault[0]))

    def _death(self, verb: str) -> Fault:
        assert self._process is not None
        code, said = self._process.wait(), self._last_words()
        self._end()
        died = f"signal {-code}" if code < 0 else f"exit code {code}"
        told = (
            f": {said}" if code > 0 or memory.REFUSED.search(said) else ""
        )  # what native code says of other crashes helps nobody
        return Fault("ProcessDied", self._with_room(f"onnxruntime ended its process with {died} ({verb}){said and told}"))

    def _last_words(self) -> str:
        """Return the line in which the child said what it died of: the last one of a traceback, for one."""
        if self._said is None:
            return ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 4096))
        lines = [line.strip() for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        return next((line for line in lines if memory.REFUSED.search(line)), lines[-1] if lines else "")[:200]

    def _with_room(self, text: str) -> str:
        """Return words with how much memory there was, where they speak of too little."""
        if self._room is None or not memory.REFUSED.search(text):
            return text
        room = f"it may take {self._room / 2**30:.1f} GiB here, at most {memory.SHARE:.0%} of the memory that is free"
        return f"{text.strip()} ({room})"

    def _start(self) -> None:
        ours, theirs = Pipe()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._room = min((n for n in (self.memory_limit, memory.share()) if n is not None), default=None)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        path = "import sys; sys.path[:] = filter(None, sys.path)"  # nothing is imported from the working directory
        imports = "from torchferry import memory; from torchferry.foreign.onnxruntime import serve"
        command = f"{path}; {imports}; memory.limit_data({self._room!r}); serve({theirs.fileno()}, {self._room!r})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            **posix.handing_over([theirs.fileno()]),
        )
        theirs.close()  # so that the child's death reads as the end of the pipe
        self._pipe = ours

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._said is not None:
            self._said.close()
        self._process = self._pipe = self._begun = self._said = None
        self._alive_keys.clear()
