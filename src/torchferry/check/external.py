"""Weights kept in other files: are they there, whole, and where a runtime may read them? Nothing is loaded."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import onnx

from torchferry.check import dtypes, graph, sniff
from torchferry.records import Finding, Location

LONGEST = 255  # bytes in the name of a file
READ_AS_WEIGHTS = ("external-data-pointer", "external-data-page")  # text that onnxruntime loads where it is long enough


@dataclass(frozen=True, slots=True)
class Piece:
    """One tensor's place in a data file: where it begins, how many bytes it takes there, how many its dims need."""

    tensor: str
    location: str
    offset: int
    length: int | None
    needs: int | None

    @property
    def end(self) -> int:
        return self.offset + (self.length if self.length is not None else self.needs or 0)


def pieces(model: onnx.ModelProto) -> list[Piece]:
    """Return where each externally stored tensor is kept."""
    return [piece_of(t) for t in graph.tensors(model) if graph.external(t)]


def piece_of(tensor: onnx.TensorProto) -> Piece:
    """Return where an externally stored tensor is kept."""
    entries = {e.key: e.value for e in tensor.external_data}
    return Piece(
        tensor.name,
        entries.get("location", ""),
        _number(entries.get("offset")) or 0,
        _number(entries.get("length")),
        needed(tensor),
    )


def needed(tensor: onnx.TensorProto) -> int | None:
    """Return how many bytes a tensor's dims and type need; None where they do not tell."""
    width, count = dtypes.bits(tensor.data_type), 1
    for dim in tensor.dims:
        count *= dim
    return None if width is None or count < 0 else (count * width + 7) // 8


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def findings(model: onnx.ModelProto, folder: Path, own: str) -> list[Finding]:
    """Return what is wrong with the data files of a model that lies in `folder` under the name `own`."""
    by_location: dict[str, list[Piece]] = {}
    for piece in pieces(model):
        by_location.setdefault(piece.location, []).append(piece)
    moves = _moves(by_location, folder, own)
    where = Location(file=str(folder / own))
    return [f for x, group in by_location.items() for f in _examine(x, group, folder, where, moves.get(x))]


def _examine(location: str, group: list[Piece], folder: Path, where: Location, moved: str | None) -> Iterator[Finding]:
    facts: dict[str, Any] = {
        "data": location,
        "tensors": [p.tensor for p in group],
        "needs": max(p.end for p in group),
    }
    if not _there(location, folder):
        trouble = path_trouble(location)
        facts |= {"trouble": trouble or "missing", "found": moved}
        yield Finding("external-data-path" if trouble or moved else "external-data-missing", where, facts)
        return
    file = folder / location
    size = file.stat().st_size
    with file.open("rb") as data:
        head = data.read(256)
    if sniff.is_pointer(head):
        yield Finding("external-data-pointer", where, {**facts, "size": size, "whole": sniff.pointer_size(head)})
        return
    if sniff.is_page(head):
        yield Finding("external-data-page", where, {**facts, "size": size})
        return
    if short := [p.tensor for p in group if p.end > size]:
        yield Finding("external-data-truncated", where, {**facts, "size": size, "short": short})
    for piece in group:
        if piece.length is not None and piece.needs is not None and piece.length != piece.needs:
            yield Finding("initializer-size", where, {"tensor": piece.tensor, "has": piece.length, "needs": piece.needs})


def path_trouble(location: str) -> str | None:
    """Return why a runtime will not follow a path: it is absolute, has backslashes, or leaves the model's folder."""
    lengths = [len(part.encode()) for part in location.split("/")]
    if not location or "\0" in location or max(lengths) > LONGEST or sum(lengths) > 4 * LONGEST:
        return "empty"
    if posixpath.isabs(location) or ntpath.isabs(location) or ntpath.splitdrive(location)[0]:
        return "absolute"
    if "\\" in location:
        return "backslash"
    return "outside" if posixpath.normpath(location).startswith("..") else None


def _there(location: str, folder: Path) -> bool:
    return path_trouble(location) is None and (folder / location).is_file()


def _moves(by_location: dict[str, list[Piece]], folder: Path, own: str) -> dict[str, str]:
    """Return the file meant by each location that leads nowhere; none where the tensors of another location lie."""
    there = {x: posixpath.normpath(x) for x in by_location if _there(x, folder)}
    lost = {x: max(p.end for p in group) for x, group in by_location.items() if x not in there}
    moves = {x: file for x, needs in lost.items() if (file := _elsewhere(x, needs, folder, own)) is not None}
    homes = {**there, **moves}

    def free(location: str) -> bool:
        others = [p for y, file in homes.items() if y != location and file == homes[location] for p in by_location[y]]
        return not any(a.offset < b.end and b.offset < a.end for a in by_location[location] for b in others)

    return {x: file for x, file in moves.items() if free(x)}


def _elsewhere(location: str, needs: int, folder: Path, own: str) -> str | None:
    """Return the file in the model's folder that is likely meant: of that name, or the only one of that size."""
    by_size = path_trouble(location) != "outside"
    path = PurePosixPath(location.replace("\\", "/"))
    plain = [str(PurePosixPath(*path.parts[i:])) for i in range(len(path.parts))]
    for name in plain:
        if path_trouble(name) is None and _holds(folder / name, needs):
            return name
    try:
        siblings = [p for p in folder.iterdir() if p.name != own and p.is_file() and p.suffix != ".onnx"]
    except OSError:
        return None
    alike = [p for p in siblings if p.name.lower() == path.name.lower() and _holds(p, needs)]
    deeper = [] if alike or not by_size else [p for p in _below(folder) if p.name == path.name and _holds(p, needs)]
    if len(deeper) == 1:
        return deeper[0].relative_to(folder).as_posix()
    exact = alike or [p for p in siblings if by_size and p.stat().st_size == needs and _holds(p, needs)]
    return exact[0].name if len(exact) == 1 else None


def _below(folder: Path) -> list[Path]:
    """Return the files in the folders of a folder, not further down: a model's folder may be a home directory."""
    return [p for sub in folder.iterdir() if sub.is_dir() and not sub.is_symlink() for p in sub.iterdir() if p.is_file()]


def _holds(file: Path, needs: int) -> bool:
    if not file.is_file() or file.stat().st_size < needs:
        return False
    with file.open("rb") as data:
        return not sniff.is_pointer(head := data.read(256)) and not sniff.is_page(head)


def relocate(model: onnx.ModelProto, moves: dict[str, str]) -> None:
    """Point the tensors kept at the old locations to the new ones."""
    for tensor in graph.tensors(model):
        for entry in tensor.external_data if graph.external(tensor) else ():
            if entry.key == "location":
                entry.value = moves.get(entry.value, entry.value)
