"""Files written beside their place and moved into it, so that a failed or killed run leaves the old one whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchferry.errors import UsageError

PREFIX = ".torchferry-"  # and the owner's process id, so that what a killed run left can be told from a live one


def check_writable(path: Path) -> None:
    """Raise UsageError unless a file can be put at `path`."""
    parent = path.parent if str(path.parent) else Path(".")
    if path.is_dir():
        raise UsageError(f"cannot write `{path}`: it is a directory; name a file in it, such as `{path / 'model.onnx'}`")
    if not parent.exists():
        raise UsageError(f"cannot write `{path}`: the directory `{parent}` does not exist; create it with `mkdir -p {parent}`")
    if not parent.is_dir():
        raise UsageError(f"cannot write `{path}`: `{parent}` is not a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"cannot write `{path}`: the file is read-only")
    if not os.access(parent, os.W_OK):
        raise UsageError(f"cannot write `{path}`: no permission to write in `{parent}`")


@contextmanager
def workspace(near: Path | None = None) -> Iterator[Path]:
    """Give a directory for unfinished files, on the same disk as `near`; it is gone afterwards, whatever happened."""
    parent = near.resolve().parent if near is not None else Path(tempfile.gettempdir())
    _sweep(parent)
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def move_into_place(source: Path, destination: Path) -> None:
    """Move a finished file, and the weights beside it, over the old ones. The weights go first: the model needs them."""
    new_data, old_data = _data_of(source), _data_of(destination)
    if new_data.exists():
        os.replace(new_data, old_data)
    os.replace(source, destination)


def move_directory(folder: Path, place: Path) -> None:
    """Move all files into a directory, graphs with their weights last: until then the old ones still fit each other."""
    graphs = sorted(folder.glob("*.onnx"))
    for path in sorted(folder.iterdir()):
        if path.is_file() and path not in graphs and path.suffix != ".data":
            os.replace(path, place / path.name)
    for graph in graphs:
        move_into_place(graph, place / graph.name)


def link_model(path: Path, folder: Path) -> Path:
    """Let a folder hold a finished file too, with its weights, without writing them anew where the disk can; return it there."""
    for part in (path, _data_of(path)):
        if part.exists():
            try:
                os.link(part, folder / part.name)
            except OSError:  # another disk, or one that knows no links
                shutil.copy2(part, folder / part.name)
    return folder / path.name


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    check_writable(path)
    with workspace(near=path) as folder:
        (folder / path.name).write_text(text, encoding="utf-8")
        os.replace(folder / path.name, path)


def _data_of(path: Path) -> Path:
    return path.with_name(path.name + ".data")


def _sweep(parent: Path) -> None:
    """Remove what runs that were killed outright left behind; their process is gone."""
    for left in parent.glob(f"{PREFIX}*-*"):
        pid = left.name[len(PREFIX) :].split("-", 1)[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to somebody else
        return True
    return True
