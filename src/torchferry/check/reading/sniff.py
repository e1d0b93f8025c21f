"""What a file is, told from its first bytes: a model, or one of the many things that get the name `.onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchferry.records.findings import Sniffed

MOST = (1 << 31) - 1  # protobuf's limit for one message
# ModelProto's fields: {number: wire type}; 0 a number, 2 bytes with their length
FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
BLANK = b"\xef\xbb\xbf \t\r\n"


def sniff(path: Path) -> Sniffed:
    """Return what the file at `path` is."""
    try:
        if not path.exists():
            return Sniffed("missing", path=str(path))
        if path.is_dir():
            inside = tuple(sorted(p.name for p in path.glob("*.onnx")))[:5]
            return Sniffed("directory", path=str(path), inside=inside)
        if not path.is_file():  # to open a pipe would wait for its other end, and a device has none
            return Sniffed("unreadable", path=str(path), error="it is a pipe, a device or a socket, and no file")
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        return Sniffed("unreadable", path=str(path), error=error.strerror or str(error))
    if size == 0:
        return Sniffed("empty")
    return _by_magic(path, head, size) or _by_wire(path, size)


def is_pointer(head: bytes) -> bool:
    """Say whether bytes begin a git-lfs pointer."""
    return head.startswith(b"version https://git-lfs")


def is_page(head: bytes) -> bool:
    """Say whether bytes begin a web page, or the XML in which a server says no."""
    lower = head.lstrip(BLANK)[:512].lower()
    begins = lower.startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))
    return begins or (lower.startswith(b"<") and b"<html" in lower)


def pointer_size(head: bytes) -> int | None:
    """Return the size of the object that a git-lfs pointer stands for."""
    sizes = [line.split()[1] for line in head.splitlines() if line.startswith(b"size ") and len(line.split()) == 2]
    return int(sizes[0]) if sizes and sizes[0].isdigit() and len(sizes[0]) < 20 else None


def _by_magic(path: Path, head: bytes, size: int) -> Sniffed | None:
    text = head.lstrip(BLANK)
    if is_pointer(text):
        return Sniffed("git-lfs-pointer", size=pointer_size(text))
    if text[:5].lower() in (b"<?xml", b"<net "):
        return Sniffed("xml")
    if is_page(text):
        return Sniffed("web-page", title=_title(head))
    if head.startswith(b"\x1f\x8b"):
        return Sniffed("gzip")
    if head.startswith((b"BZh", b"\xfd7zXZ\0")):
        return Sniffed("bzip2" if head[0] == 0x42 else "xz")
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return Sniffed("other-format", format="a file compressed with Zstandard (zstd)")
    if head[257:262] == b"ustar":
        return _tar(path)
    if head.startswith(b"PK\x03\x04"):
        return _zip(path)
    if head[4:8] == b"ORTM":
        return Sniffed("ort-format")
    if head[4:8] == b"TFL3":
        return Sniffed("other-format", format="a TensorFlow Lite model")
    if head.startswith(b"\x89HDF\r\n"):
        return Sniffed("other-format", format="an HDF5 file, such as Keras writes")
    if head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        return Sniffed("torch-checkpoint", format="a Python pickle, such as old versions of torch.save write")
    if head.startswith((b"GGUF", b"ggml", b"\x93NUMPY")):
        return Sniffed("other-format", format="a numpy array" if head[0] == 0x93 else "a GGUF model")
    if (header := _safetensors(path, head, size)) is not None:
        return header
    return _text(path, text, size)


def _zip(path: Path) -> Sniffed:
    import zipfile

    try:
        names = zipfile.ZipFile(path).namelist()
    except (zipfile.BadZipFile, OSError):
        return Sniffed("truncated", what="a zip archive without its end")
    if any(n.endswith("data.pkl") for n in names):
        what = (
            "a torch.export program (.pt2)"
            if any("serialized_exported_program" in n for n in names)
            else "what torch.save writes"
        )
        return Sniffed("torch-checkpoint", format=what, member=next(n for n in names if n.endswith("data.pkl")))
    if any(n.endswith(("serialized_exported_program.json", "models/model.json")) for n in names):
        return Sniffed("torch-checkpoint", format="a torch.export program (.pt2)")
    models = [n for n in names if n.endswith(".onnx")]
    return Sniffed("zip-with-model", member=models[0]) if len(models) == 1 else Sniffed("zip", members=tuple(names[:8]))


def _tar(path: Path) -> Sniffed:
    import tarfile

    try:
        with tarfile.open(path) as archive:
            names = [m.name for m in archive.getmembers() if m.isfile()]
    except (tarfile.TarError, OSError, EOFError):
        return Sniffed("truncated", what="a tar archive without its end")
    models = [n for n in names if n.endswith(".onnx")]
    return Sniffed("tar-with-model", member=models[0]) if len(models) == 1 else Sniffed("tar", members=tuple(names[:8]))


def _safetensors(path: Path, head: bytes, size: int) -> Sniffed | None:
    length = int.from_bytes(head[:8], "little")
    if head[8:9] != b"{" or not 2 <= length <= size - 8:
        return None
    import json

    try:
        with path.open("rb") as file:
            names = json.loads(file.read(8 + min(length, 1 << 26))[8:])
    except (ValueError, RecursionError):
        return None
    return Sniffed("safetensors", tensors=sum(n != "__metadata__" for n in names))


def _text(path: Path, text: bytes, size: int) -> Sniffed | None:
    if text.startswith((b"{", b"[")):
        return Sniffed("model-as-json" if b'"irVersion"' in text or b'"graph"' in text else "json", begins=_words(text))
    printable = bool(text) and all(b in b"\t\r\n" or 32 <= b < 127 for b in text[:1024])
    if printable and (
        text.startswith((b"ir_version:", b"graph {", b"graph:", b"producer_name:", b"opset_import")) or b"\nir_version:" in text
    ):
        return Sniffed("text-proto")
    if printable and text.startswith(b"<") and b"ir_version:" in text[:256]:
        return Sniffed("onnx-text", begins=_words(text))
    if printable and (size > 16 or b" " in text):
        return Sniffed("text", begins=_words(text))
    return None


def _title(head: bytes) -> str:
    begin, end = head.lower().find(b"<title>"), head.lower().find(b"</title>")
    return head[begin + 7 : end].decode("utf-8", "replace").strip()[:80] if 0 <= begin < end else ""


def _words(text: bytes) -> str:
    return text[:60].decode("utf-8", "replace").split("\n")[0]


def _by_wire(path: Path, size: int) -> Sniffed:
    """Walk the top-level fields without reading them: a field longer than the file means that the file was cut."""
    seen = set()
    with path.open("rb") as file:
        while (at := file.tell()) < size:
            key = _varint(file)
            number, wire = (key or 0) >> 3, (key or 0) & 7
            if key is None or FIELDS.get(number) != wire:
                return Sniffed("damaged" if 7 in seen else "not-a-model", at=at, size=size)
            length = _varint(file)
            if length is None:
                return Sniffed("truncated", size=size)
            if wire == 2:
                if file.tell() + length > size:
                    return Sniffed("truncated", size=size, needs=file.tell() + length)
                file.seek(length, 1)
            seen.add(number)
    if 7 not in seen:
        return Sniffed("no-graph", size=size)
    return Sniffed("over-two-gigabytes", size=size) if size > MOST else Sniffed("onnx")


def _varint(file: Any) -> int | None:
    value: int = 0
    for shift in range(0, 70, 7):
        byte: bytes = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return None
