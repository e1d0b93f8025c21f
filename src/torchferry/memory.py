"""How much memory there is to be had: the least of what the machine, its control groups and the limits of the process leave.

What is limited by it is the data of a process (RLIMIT_DATA), not its address space: for onnxruntime the two are 120 MB and
330 MB after the import, and an arena that is reserved, or weights that are mapped from a file, are address space alone. What
goes beyond the limit is refused to the allocation that asks for it, so the answer is an error with a node's name, not a kill.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from torchferry.foreign import posix

SHARE = 0.5  # of what is free; the rest is for us, who hold feeds and outputs, and for others
LEAST = 256 << 20  # bytes: with less no runtime opens anything, whatever the file
LEAST_PER_CORE = 16 << 20  # for the stacks of its threads
# the words in which Python, C++, the loader and onnxruntime say that there was not enough
REFUSED = re.compile(r"bad.?alloc|allocate memory|MemoryError|requested buffer|failed to map segment|start new thread", re.I)
UNLIMITED = 1 << 60  # control groups write a number near 2**63 for "no limit"


def share() -> int | None:
    """Return how many bytes of data a process that opens an unknown file may take; None where nobody can tell what is free."""
    left = free()
    return None if left is None else max(int(left * SHARE), LEAST + LEAST_PER_CORE * (os.cpu_count() or 1))


def free(root: Path = Path("/")) -> int | None:
    """Return how many bytes a new process can take; None where the system does not tell. `root` is where /proc and /sys lie."""
    told = [*_of_machine(root), *_of_groups(root), *posix.limits()]
    return max(0, min(told)) if told else None


def ran_out(error: BaseException | None) -> bool:
    """Whether an exception, or one that it came from, says that there was not enough memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, ImportError | OSError) and REFUSED.search(str(error))):
            return True
        error = error.__cause__ or error.__context__
    return False


def limit_data(room: int | None) -> None:
    """Let this process take no more than so many bytes beyond what it holds; a limit that is lower already stays."""
    if room is not None and (held := held_bytes(of=5)) is not None:
        posix.limit_data(held + room)


def held_bytes(of: int = 0) -> int | None:
    """Return how much this process holds: its address space, or a field `of` /proc/self/statm; None where nobody can tell."""
    lines, page = _lines(Path("/proc/self/statm")), posix.page()
    return int(lines[0].split()[of]) * page if lines and page is not None else None


def _of_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[:1] and rest.split()[0].isdecimal():
            yield int(rest.split()[0]) << 10


def _of_groups(root: Path) -> Iterator[int]:
    """Yield what each control group leaves that this process is in, of either version, up to the root of the mount."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if number == "0" and not kinds:
            mount, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            mount, names = (
                root / "sys/fs/cgroup/memory",
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            )
        else:
            continue
        group = mount / place.strip().lstrip("/")
        for folder in (group, *group.parents):  # inside a container the place may be told as seen from outside: then the mount
            if folder == mount or mount in folder.parents:
                yield from _left(folder, *names)


def _left(folder: Path, limit: str, used: str, given_back: str) -> Iterator[int]:
    """Yield what one group leaves: its limit without what is used, but for cached files, which are given back when asked for."""
    most, taken = _number(folder / limit), _number(folder / used)
    if most is None or taken is None or most >= UNLIMITED:
        return
    cached = [line.split()[1] for line in _lines(folder / "memory.stat") if line.split()[:1] == [given_back]]
    yield most - taken + (int(cached[0]) if cached and cached[0].isdecimal() else 0)


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
