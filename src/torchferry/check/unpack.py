"""Files that hold a model in another wrapping, read as what they are: gzip, zip, protobuf text, JSON, onnx's own text."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import onnx

READABLE = frozenset({"gzip", "zip-with-model", "text-proto", "model-as-json", "onnx-text"})
MOST = 1 << 31  # a small archive may hold an endless file


def unpacked(path: Path, kind: str, member: str | None = None) -> bytes:
    """Return the model's bytes; raises ValueError, OSError or EOFError where the wrapping is damaged."""
    if kind == "gzip":
        with gzip.open(path) as file:
            return _whole(file.read(MOST + 1))
    if kind == "zip-with-model":
        with zipfile.ZipFile(path) as archive, archive.open(member or "") as inner:
            return _whole(inner.read(MOST + 1))
    if kind == "onnx-text":
        return bytes(onnx.parser.parse_model(path.read_text("utf-8")).SerializeToString())
    form = "json" if kind == "model-as-json" else "textproto"
    return bytes(onnx.load_model_from_string(path.read_bytes(), format=form).SerializeToString())


def _whole(data: bytes) -> bytes:
    if len(data) > MOST:
        raise ValueError("it unpacks to more than 2 GB")
    return data
