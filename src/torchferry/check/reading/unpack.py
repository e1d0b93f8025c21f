"""Files that hold a model in another wrapping, read as what they are: gzip, zip, protobuf text, JSON, onnx's own text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

READABLE = frozenset({"gzip", "bzip2", "xz", "zip-with-model", "tar-with-model", "text-proto", "model-as-json", "onnx-text"})
OPENERS: dict[str, Callable[[Path], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
MOST = 1 << 31  # a small archive may hold an endless file


def unpacked(path: Path, kind: str, member: str | None = None) -> bytes:
    """Return the model's bytes; raises ValueError, OSError or EOFError where the wrapping is damaged."""
    if kind in OPENERS:
        with OPENERS[kind](path) as file:
            return _whole(file.read(MOST + 1))
    if kind == "tar-with-model":
        with tarfile.open(path) as archive:
            inner = archive.extractfile(member or "")
            return _whole(inner.read(MOST + 1) if inner is not None else b"")
    if kind == "zip-with-model":
        with zipfile.ZipFile(path) as packed, packed.open(member or "") as part:
            return _whole(part.read(MOST + 1))
    if kind == "onnx-text":
        return bytes(onnx.parser.parse_model(path.read_text("utf-8")).SerializeToString())
    form = "json" if kind == "model-as-json" else "textproto"
    return bytes(onnx.load_model_from_string(path.read_bytes(), format=form).SerializeToString())


def _whole(data: bytes) -> bytes:
    if len(data) > MOST:
        raise ValueError("it unpacks to more than 2 GB")
    return data
