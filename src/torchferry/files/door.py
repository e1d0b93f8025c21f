"""A finished file put in its place by one rename, durably: links are followed and kept, so are modes and owners."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torchferry.errors import UsageError
from torchferry.foreign.posix import TO_SYNC, give_to

UNSYNCED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EBADF}  # said where folders cannot be synced
LACK_OF_ROOM = {
    errno.ENOSPC: "the disk is full; free some room",
    errno.EDQUOT: "your share of the disk is used up; free some room",
    errno.EFBIG: "it would be larger than a file may be here; see `ulimit -f`",
}
NO_PLACE = "No usable temporary directory"  # Python's words
WORDS = LACK_OF_ROOM | {
    errno.ENAMETOOLONG: "the name is too long for the file system",
    errno.EROFS: "the file system is read-only",
    errno.ELOOP: "its symbolic links lead back to themselves",
}


def is_lack_of_room(error: OSError) -> bool:
    """Whether an error says that a disk, or what may be written to it, is used up, or that no temporary file can be written."""
    return error.errno in LACK_OF_ROOM or _said_by_numpy(error) or NO_PLACE in str(error)


def _said_by_numpy(error: OSError) -> bool:
    return re.search(r"\d+ requested and \d+ written", str(error)) is not None


def why(error: OSError) -> str:
    """Return what the system has against a file, in words."""
    known = WORDS.get(error.errno or 0) or (LACK_OF_ROOM[errno.ENOSPC] if _said_by_numpy(error) else None)
    return known or error.strerror or str(error)


def is_path(where: Any) -> bool:
    """Whether something names a file. False for None and for what bytes are written to; raises UsageError for anything else."""
    if where is None or callable(getattr(where, "write", None)):
        return False
    if not isinstance(where, str | os.PathLike):
        raise UsageError(f"a file is named by a path, or is something to write to; it is {type(where).__name__}")
    return True


@contextmanager
def in_words(path: Path | str) -> Iterator[None]:
    """Turn what the system has against writing `path` into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {why(error)}") from error


def landing(path: Path) -> Path:
    """Return the file that `path` stands for, at the end of all links, whether there is one or not."""
    if "\0" in str(path):
        raise UsageError(f"cannot write {str(path)!r}: a file's name has no zero byte")
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError as error:
        raise UsageError(f"cannot write `{path}`: the working directory no longer exists; change to another") from error


def check_writable(path: Path) -> None:
    """Raise UsageError unless a file can be put at `path`."""
    with in_words(path):
        target = landing(path)
        if not _is_text(target):
            raise UsageError(f"cannot write `{path}`: its name is not text in UTF-8, and no runtime would open it")
        parent, found = target.parent, _status(path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise UsageError(f"cannot write `{path}`: it is a directory; name a file in it, such as `{path / 'model.onnx'}`")
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise UsageError(f"cannot write `{path}`: it is {_kind(found)}, and a finished file is renamed into its place")
        if not parent.exists():
            named = parent if path.is_symlink() else path.parent
            raise UsageError(f"cannot write `{path}`: the directory `{named}` does not exist; create it with `mkdir -p {named}`")
        if not parent.is_dir():
            raise UsageError(f"cannot write `{path}`: `{parent}` is not a directory")
        if found is not None and not os.access(target, os.W_OK):
            raise UsageError(f"cannot write `{path}`: the file is read-only")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise UsageError(f"cannot write `{path}`: no permission to write in `{parent}`")


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8 stand for themselves in a path
        return False
    return True


def put(source: Path, destination: Path, like: Path | None = None) -> None:
    """Rename a finished file, durably, over the one that `destination` stands for, with the mode of that or of `like`."""
    target = landing(destination)
    found = _status(target)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise UsageError(f"cannot write `{destination}`: it is {_kind(found)}")
    handle = os.open(source, TO_SYNC)
    try:
        if (model := found or (_status(like) if like is not None else None)) is not None:
            _take_after(source, model)
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(source, target)
    sync_folder(target.parent)


def write(path: Path, data: bytes) -> None:
    """Write a new file; it lies in a workspace, and is not yet synced."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    handle = os.open(path, TO_SYNC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can say so."""
    try:
        sync(path)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise


def _take_after(path: Path, model: os.stat_result) -> None:
    made = os.stat(path)
    if (made.st_uid, made.st_gid) != (model.st_uid, model.st_gid):
        give_to(path, model.st_uid, model.st_gid)
    os.chmod(path, stat.S_IMODE(model.st_mode) & 0o777)


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(found: os.stat_result) -> str:
    kinds = {stat.S_ISDIR: "a directory", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((words for test, words in kinds.items() if test(found.st_mode)), "a device")
