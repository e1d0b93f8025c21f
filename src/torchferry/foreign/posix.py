"""Door to what POSIX systems have and Windows has not: signals, forks, groups of processes, limits of memory, locks on files.

Relies on `fcntl`, `resource`, `os.fork`, `os.killpg`, `os.register_at_fork`, `signal.setitimer` and their like, each looked up
where it is needed: a system without one gets an answer that says so, and goes on without.
Should they move: on Windows `msvcrt.locking` locks files, a job object limits memory, and handles are passed on by STARTUPINFO.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

Handler = Callable[[int, FrameType | None], Any]

# what asks a process to end or to stop for a while, of what the system has
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PAUSING: Any = getattr(signal, "SIGTSTP", None)
ALARM: Any = getattr(signal, "SIGALRM", None)
_KILL: Any = getattr(signal, "SIGKILL", signal.SIGTERM)


def module(name: str) -> Any | None:
    """Return a module of the standard library; None where the system has it not."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# --- processes -----------------------------------------------------------------------------------


def can_supervise() -> bool:
    """Whether a process can be put into a group of its own, be stopped and ended with all that it started."""
    return os.name == "posix" and hasattr(os, "killpg") and PAUSING is not None


def can_fork() -> bool:
    """Whether this process can be copied as it is."""
    return hasattr(os, "fork") and hasattr(os, "waitpid")


def fork() -> int:
    """Copy this process: 0 in the copy, which is known by the number that is returned here."""
    return os.fork()


def exit_code(pid: int) -> int | None:
    """Wait for a copy to end, and return its exit code; None where the user has children forgotten as they end."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None


def kill(pid: int) -> None:
    """End a process at once, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, _KILL)


def end_now() -> NoReturn:
    """End this process at once: nothing that was registered for its end is run."""
    signal.raise_signal(_KILL)
    os._exit(1)


def kill_group(pid: int) -> None:
    """End a process at once, and everything that it started, as far as they are there and are ours."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, _KILL)


def pause_with(pid: int) -> None:
    """Stop the group of a process, and this one, until this one is told to go on."""
    os.killpg(pid, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.killpg(pid, signal.SIGCONT)


def after_fork(do: Callable[[], None]) -> None:
    """Have something done in every copy of this process, where there are any."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=do)


def handing_over(handles: Sequence[int]) -> dict[str, Any]:
    """Return how `subprocess.Popen` is told that a child may use open handles of ours, under the same numbers."""
    if os.name == "posix":
        return {"pass_fds": tuple(handles)}
    for handle in handles:  # of a pipe of `multiprocessing`, which on Windows is a handle of the system
        os.set_handle_inheritable(handle, True)  # type: ignore[attr-defined]
    startup = subprocess.STARTUPINFO()  # type: ignore[attr-defined]
    startup.lpAttributeList = {"handle_list": list(handles)}
    return {"startupinfo": startup}


def pipe_of(handle: int) -> Any:
    """Return the end of a pipe that a parent has handed over."""
    from multiprocessing import connection

    return (connection.Connection if os.name == "posix" else connection.PipeConnection)(handle)  # type: ignore[attr-defined]


# --- time ----------------------------------------------------------------------------------------


def has_alarms() -> bool:
    """Whether the system can interrupt the main thread after a while."""
    return ALARM is not None and hasattr(signal, "setitimer")


def alarm(seconds: float, interval: float = 0.0) -> None:
    """Have ALARM sent after so many seconds, and again at intervals; 0 seconds: no more."""
    signal.setitimer(signal.ITIMER_REAL, seconds, interval)


def alarm_left() -> tuple[float, float]:
    """Return in how many seconds the next ALARM comes, 0 for none, and at which intervals it comes again."""
    return signal.getitimer(signal.ITIMER_REAL)


# --- memory --------------------------------------------------------------------------------------


def limits() -> list[int]:
    """Return what limits the address space and the data of this process, in bytes: as many numbers as there are limits."""
    if (resource := module("resource")) is None:
        return []
    held = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return [soft for soft in held if soft != resource.RLIM_INFINITY]


def limit_data(most: int) -> None:
    """Refuse this process data beyond so many bytes, or beyond the limit that there is; nothing where there are no limits."""
    if (resource := module("resource")) is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def limit_space(most: int) -> Callable[[], None]:
    """Refuse this process address space beyond so many bytes, or beyond the limit that there is; return what gives it back."""
    if (resource := module("resource")) is None:
        return lambda: None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def page() -> int | None:
    """Return the size of a page of memory in bytes; None where the system does not count in them."""
    resource = module("resource")
    return None if resource is None else int(resource.getpagesize())


def physical_memory() -> int | None:
    """Return the memory of the machine in bytes; None where it is not told."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None


def give_back_memory() -> None:
    """Let the C library hand memory back that was freed, where it can; it looks through what it holds on the way."""
    import ctypes

    if hasattr(library := ctypes.CDLL(None) if os.name == "posix" else None, "malloc_trim"):
        library.malloc_trim(0)  # type: ignore[union-attr]


# --- files ---------------------------------------------------------------------------------------

# what a file is opened with to be synced: Windows syncs none that cannot be written to
TO_SYNC = os.O_RDONLY if os.name == "posix" else os.O_RDWR


NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # opens no file at the end of a link, where the system can refuse that


def locked(handle: int) -> bool | None:
    """Whether the lock on an open file could be taken, or is somebody's; None where there are no locks."""
    fcntl = module("fcntl")
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except OSError:
        pass
    return None


def is_mine(owner: int) -> bool:
    """Whether a file of this owner is the user's; where files have no owners, it is."""
    return not hasattr(os, "geteuid") or owner == os.geteuid()


def give_to(path: Any, owner: int, group: int) -> None:
    """Give a file to somebody, where the system allows it: mostly root alone may."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, owner, group)
