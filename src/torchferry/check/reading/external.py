"""Weights kept in other files: are they there, whole, and where a runtime may read them? Nothing is loaded."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import onnx

from torchferry.check.reading import graph, sniff
from torchferry.check.reading.expressions import whole
from torchferry.check.reading.fingerprint import WeightsUnreadable, fingerprint, recorded
from torchferry.check.types import dtypes
from torchferry.files.digest import digest
from torchferry.records import Finding, Location
from torchferry.records.findings import (
    InitializerSize,
    PathTrouble,
    WeightsArePage,
    WeightsArePointer,
    WeightsElsewhere,
    WeightsFile,
    WeightsMissing,
    WeightsTruncated,
)

LONGEST = 255  # bytes in the name of a file


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor's place in a data file: where it begins, how many bytes it takes there, how many its dims need."""

    tensor: str
    location: str
    offset: int
    length: int | None
    needs: int | None
    checksum: str = ""  # SHA-1 of the whole data file, which few tools write

    @property
    def end(self) -> int:
        return self.offset + (self.length if self.length is not None else self.needs or 0)


def pieces(model: onnx.ModelProto) -> list[StoredTensor]:
    """Return where each externally stored tensor is kept."""
    return [piece_of(t) for t in graph.tensors(model) if graph.external(t)]


def piece_of(tensor: onnx.TensorProto) -> StoredTensor:
    """Return where an externally stored tensor is kept."""
    entries = {e.key: e.value for e in tensor.external_data}
    return StoredTensor(
        tensor.name,
        entries.get("location", ""),
        whole(entries.get("offset")) or 0,
        whole(entries.get("length")),
        needed(tensor),
        entries.get("checksum", "").lower(),
    )


def needed(tensor: onnx.TensorProto) -> int | None:
    """Return how many bytes a tensor's dims and type need; None where they do not tell."""
    width, count = dtypes.bits(tensor.data_type), 1
    for dim in tensor.dims:
        count *= dim
    return None if width is None or count < 0 else (count * width + 7) // 8


def findings(model: onnx.ModelProto, folder: Path, own: str) -> list[Finding]:
    """Return what is wrong with the data files of a model that lies in `folder` under the name `own`."""
    by_location: dict[str, list[StoredTensor]] = {}
    for piece in pieces(model):
        by_location.setdefault(piece.location, []).append(piece)
    moves = _moves(model, by_location, folder, own)
    where = Location(file=str(folder / own))
    return [f for x, group in by_location.items() for f in _examine(x, group, folder, where, moves.get(x))]


def _examine(location: str, group: list[StoredTensor], folder: Path, where: Location, moved: Meant | None) -> Iterator[Finding]:
    weights = WeightsFile(location, tuple(p.tensor for p in group), max(p.end for p in group))
    if not _there(location, folder):
        trouble = path_trouble(location)
        if trouble or moved:
            found, guess = (moved.file, moved.guess) if moved else (None, "")
            yield WeightsElsewhere(weights, trouble or "missing", found, guess, location=where)
        else:
            yield WeightsMissing(weights, location=where)
        return
    file = folder / location
    size = file.stat().st_size
    with file.open("rb") as data:
        head = data.read(256)
    if sniff.is_pointer(head):
        yield WeightsArePointer(weights, location=where)
        return
    if sniff.is_page(head):
        yield WeightsArePage(weights, location=where)
        return
    if short := tuple(p.tensor for p in group if p.end > size):
        yield WeightsTruncated(weights, size, short, location=where)
    for piece in group:
        if piece.length is not None and piece.needs is not None and piece.length != piece.needs:
            yield InitializerSize(piece.tensor, piece.length, piece.needs, location=where)


def path_trouble(location: str) -> PathTrouble | None:
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


@dataclass(frozen=True, slots=True)
class Meant:
    """The file that a location which leads nowhere may mean, and why that is only a guess (empty: it is shown)."""

    file: str
    guess: str = ""


def _moves(model: onnx.ModelProto, by_location: dict[str, list[StoredTensor]], folder: Path, own: str) -> dict[str, Meant]:
    """Return the file meant by each location that leads nowhere; none where the tensors of another location lie."""
    there = {x: posixpath.normpath(x) for x in by_location if _there(x, folder)}
    if len(lost := [x for x in by_location if x not in there]) == 1 and (certified := recorded(model)) is not None:
        needs = max(p.end for p in by_location[lost[0]])
        told = [p for p in _candidates(folder, own, needs) if _certified(model, certified, lost[0], p, folder)]
        return {lost[0]: Meant(told[0].relative_to(folder).as_posix())} if told else {}
    moves = {x: m for x, group in by_location.items() if x not in there and (m := _elsewhere(x, group, folder, own)) is not None}
    homes = {**there, **{x: m.file for x, m in moves.items()}}

    def free(location: str) -> bool:
        others = [p for y, file in homes.items() if y != location and file == homes[location] for p in by_location[y]]
        return not any(a.offset < b.end and b.offset < a.end for a in by_location[location] for b in others)

    return {x: m for x, m in moves.items() if free(x)}


def _elsewhere(location: str, group: list[StoredTensor], folder: Path, own: str) -> Meant | None:
    """Return the file that is meant: the one of the recorded checksum, else of the recorded name and length; or a likely one.

    The size alone shows nothing: any file may have it.
    """
    name, needs = PurePosixPath(location.replace("\\", "/")).name, max(p.end for p in group)
    near = _candidates(folder, own, needs)
    if sums := {p.checksum for p in group if p.checksum}:
        told = [p for p in near if sums == {_sha1(p)}]
        return Meant(told[0].relative_to(folder).as_posix()) if told else None
    named = [p for p in near if p.name == name]
    if len(named) == 1:
        found = named[0].relative_to(folder).as_posix()
        there = found == name or PurePosixPath(location.replace("\\", "/")).match(found)
        away = "" if there else "it lies in another folder than the model and the path that it records"
        return Meant(found, away or _doubt(named[0], location, needs, folder))
    if named or path_trouble(location) == "outside":
        return None
    alike = [p for p in near if p.parent == folder and (p.name.lower() == name.lower() or p.stat().st_size == needs)]
    why = "neither its name nor a checksum says that these are the weights"
    return Meant(alike[0].name, why) if len(alike) == 1 else None


def _doubt(file: Path, location: str, needs: int, folder: Path) -> str:
    """Return why a file of the recorded name may not be the one: it is longer, or another one lies at the very place."""
    if (size := file.stat().st_size) != needs:
        return f"it has {size} bytes, the weights take {needs}"
    place = folder / location
    there = path_trouble(location) in ("absolute", "outside") and place.is_file()
    other = there and (place.stat().st_size != size or _sha1(place) != _sha1(file))
    return f"another file of that name lies at `{location}`" if other else ""


def _certified(model: onnx.ModelProto, certified: dict[str, Any], location: str, file: Path, folder: Path) -> bool:
    """Whether, read from a file, the weights are those that the certificate in the model speaks of."""
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    relocate(moved, {location: file.relative_to(folder).as_posix()})
    try:
        return bool(fingerprint(moved, folder)["weights"] == certified.get("weights"))
    except (WeightsUnreadable, OSError):
        return False


def _candidates(folder: Path, own: str, needs: int) -> list[Path]:
    """Return the files that are long enough to hold the weights, and are not models themselves."""
    try:
        return [p for p in _near(folder) if p.name != own and p.suffix != ".onnx" and _holds(p, needs)]
    except OSError:
        return []


def _sha1(file: Path) -> str:
    """Return the digest that ONNX keeps of data files."""
    with file.open("rb") as data:
        return digest(data, "sha1")


def _near(folder: Path) -> list[Path]:
    """Return the files in a folder and in its folders."""
    return [p for p in folder.iterdir() if p.is_file()] + _below(folder)


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
