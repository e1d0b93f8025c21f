"""A mended model written into the workspace, with its weights beside it and never copied without need."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx

from torchferry.check.reading import external, graph
from torchferry.files import data_name

INLINE = 64 * 2**20  # weights up to this size go into the file itself: one file is easier to keep
PAGE = 4096  # data that a runtime maps into memory must begin on a page


def write(model: onnx.ModelProto, path: Path, home: Path) -> None:
    """Write a model whose external data, if any, lies in `home`; afterwards it lies in one file beside `path`."""
    pieces = [p for p in external.pieces(model) if external.path_trouble(p.location) is None and (home / p.location).is_file()]
    if pieces and sum(p.end - p.offset for p in pieces) <= INLINE:
        _inline(model, home)
    elif pieces:
        _carry(model, path, home, sorted({p.location for p in pieces}))
    path.write_bytes(model.SerializeToString())


def _inline(model: onnx.ModelProto, home: Path) -> None:
    for tensor in graph.tensors(model):
        piece = external.piece_of(tensor) if graph.external(tensor) else None
        if piece is None or not (home / piece.location).is_file():
            continue
        with (home / piece.location).open("rb") as data:
            data.seek(piece.offset)
            raw = data.read(piece.end - piece.offset)
        if len(raw) == piece.end - piece.offset:  # a file that was cut stays as it is: there is a finding for that
            tensor.raw_data = raw
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]


def _carry(model: onnx.ModelProto, path: Path, home: Path, locations: list[str]) -> None:
    """Put the data files end to end under the name that goes with `path`; once for all attempts in a workspace."""
    data, starts, end = path.with_name(data_name(path.name)), {}, 0
    for location in locations:
        starts[location] = end + -end % PAGE
        end = starts[location] + (home / location).stat().st_size
    if not data.exists() or data.stat().st_size != end:
        _copy({home / location: start for location, start in starts.items()}, data)
    for tensor in graph.tensors(model):
        if graph.external(tensor) and external.piece_of(tensor).location in starts:
            _move(tensor, data.name, starts)


def _copy(parts: dict[Path, int], data: Path) -> None:
    with data.open("wb") as whole:
        for file, start in parts.items():
            whole.write(b"\0" * (start - whole.tell()))
            with file.open("rb") as part:
                shutil.copyfileobj(part, whole, 1 << 20)


def _move(tensor: onnx.TensorProto, name: str, starts: dict[str, int]) -> None:
    piece = external.piece_of(tensor)
    entries = {"location": name, "offset": starts[piece.location] + piece.offset, "length": piece.length}
    del tensor.external_data[:]
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
