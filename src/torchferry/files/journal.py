"""What a run notes before it publishes, so that it, or whoever sweeps after its death, can settle what it began.

Noted are the names of the weights that may be left without a graph, old ones and new; and, while the files of a directory are
replaced one by one, which were put there: until the note is taken back, settling brings the old ones back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torchferry.files.door import put, sync_folder, write
from torchferry.files.locks import turn
from torchferry.files.weights import OURS, still_named

PREFIX, NOTE, SAVED = ".torchferry-run-", "published.json", "saved"


@dataclass(frozen=True, slots=True)
class Note:
    """Weights to look after, and the graphs that may name them; files that are about to be put, by name and inode."""

    weights: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    home: str = ""  # the folder of the link that a graph was put through, which has links to the weights
    replaced: Mapping[str, int] = field(default_factory=dict)


def note(root: Path, told: Note) -> None:
    """Write a note into a lease, in the place of the one before."""
    write(root / "note", json.dumps(asdict(told)).encode())
    put(root / "note", root / NOTE)


def settle(root: Path) -> bool:
    """Bring back what a broken off run replaced, and remove weights that no graph names any more; False if that must wait."""
    told = _noted(root)
    if not told.weights and not told.replaced:
        return True
    place = root.parent
    try:
        with turn(place):
            for name, inode in told.replaced.items():
                _bring_back(root / SAVED / name, place / name, inode)
            sync_folder(place)  # nothing is removed before what made it needless is on the disk
            for name in told.weights:
                if not still_named(name, place, told.graphs):
                    (place / name).unlink(missing_ok=True)
                if (link := Path(told.home, name)).is_symlink() and not link.exists():
                    link.unlink()
    except OSError:
        return False
    return True


def under_way(place: Path) -> bool:
    """Whether files of a directory are being replaced, or were when a run died, so that they may not fit each other."""
    return any(_noted(root).replaced for root in place.glob(f"{PREFIX}*"))


def _bring_back(saved: Path, file: Path, inode: int) -> None:
    """Put an old file back in the place of the one with this inode, or remove that where there was none; leave others alone."""
    if not file.exists() or file.stat().st_ino != inode:
        return
    if saved.exists():
        put(saved, file)
    else:
        file.unlink()


def _noted(root: Path) -> Note:
    """Return the note of a lease, as far as its names are plain ones: it was read from a file."""
    try:
        held: Any = json.loads((root / NOTE).read_text(encoding="utf-8"))
        weights = tuple(name for name in held["weights"] if _plain(name) and OURS.fullmatch(name))
        replaced = {name: inode for name, inode in held["replaced"].items() if _plain(name) and isinstance(inode, int)}
        return Note(weights, tuple(filter(_plain, held["graphs"])), str(held["home"]), replaced)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return Note()


def _plain(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and not {"/", os.sep, "\0"} & set(name)
