"""What tells an ONNX file from any other: digests of its graph, and of all its weights, wherever they lie.

Two digests, so that it can be said which of them changed. Where a tensor's bytes are kept, in the file or in another one and
under which name, is no part of them: a file may be copied, and its weights with it, or put into one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableSequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchferry import intake
from torchferry.check.reading.expressions import whole
from torchferry.errors import FileRefused
from torchferry.records.documents import Certificate

CERTIFICATE_KEY = "pkg.torchferry.certificate"
QUANTISED_KEY = "pkg.torchferry.quantised"  # the precision of weights that were put into fewer bits
SESSION_KEY = "pkg.torchferry.session"  # what a session must set for the file to be right; torchferry's own sessions read it
CHUNK = 1 << 22
STRING = 8  # onnx.TensorProto.STRING


class WeightsUnreadable(ValueError):
    """A file that holds weights is not there, or does not hold them all."""


def fingerprint(model: Any, folder: Path) -> dict[str, Any]:
    """Return the digests of a model (an onnx.ModelProto) whose further files lie in `folder`, and the versions that it has.

    Raises WeightsUnreadable where weights in other files are missing or cut short.
    """
    structure, weights = hashlib.sha256(), hashlib.sha256()
    for tensor in _walk(model, structure):
        _weigh(tensor, folder, weights)
    for key, value in sorted((p.key, p.value) for p in model.metadata_props if p.key == SESSION_KEY):
        _say(structure, f"{key}={value}")
    opsets = {o.domain: o.version for o in model.opset_import}
    return {"graph": structure.hexdigest(), "weights": weights.hexdigest(), "opsets": opsets, "ir_version": model.ir_version}


def changes(then: Any, now: dict[str, Any]) -> tuple[str, ...]:
    """Return what is no longer as it was, in words; nothing where all is."""
    words = {
        "graph": "its graph has changed",
        "weights": "its weights have changed",
        "opsets": "the opsets that it imports have changed",
        "ir_version": "its IR version has changed",
    }
    return tuple(said for key, said in words.items() if not isinstance(then, dict) or then.get(key) != now[key])


def recorded(model: Any) -> dict[str, Any] | None:
    """Return the fingerprint in the certificate that a model carries; None where it has none that can be read."""
    text = next((p.value for p in model.metadata_props if p.key == CERTIFICATE_KEY), None)
    try:
        held = intake.told(Certificate, text or "", CERTIFICATE_KEY)
    except FileRefused:
        return None
    return asdict(held.fingerprint)


def _walk(model: Any, structure: Any) -> Iterator[Any]:
    """Tell the digest all of the model but the numbers of its tensors, and yield those tensors in the same order."""
    yield from _graph(model.graph, structure)
    for function in sorted(model.functions, key=lambda f: (f.domain, f.name, f.overload)):
        yield from _without(function, structure, "node", "attribute_proto")
    for training in model.training_info:
        _tell(structure, training)


def _graph(graph: Any, structure: Any) -> Iterator[Any]:
    yield from _without(graph, structure, "node", "initializer", "sparse_initializer")


def _without(part: Any, structure: Any, *heavy: str) -> Iterator[Any]:
    """Tell the digest a message field by field; what may hold tensors is taken apart."""
    light = type(part)()
    for field, value in part.ListFields():
        if field.name in heavy:
            continue
        if isinstance(value, MutableSequence):
            getattr(light, field.name).MergeFrom(value)
        elif field.message_type is not None:
            getattr(light, field.name).CopyFrom(value)
        else:
            setattr(light, field.name, value)
    _tell(structure, light)
    for name in heavy:
        _say(structure, name)
        for item in getattr(part, name):
            yield from TAKEN_APART[name](item, structure)


def _node(node: Any, structure: Any) -> Iterator[Any]:
    yield from _without(node, structure, "attribute")


def _attribute(attribute: Any, structure: Any) -> Iterator[Any]:
    """Tensors and graphs that are a node's attribute: constants, branches, the bodies of loops."""
    heavy = ("t", "g", "tensors", "graphs", "sparse_tensor", "sparse_tensors")
    light = type(attribute)()
    light.CopyFrom(attribute)
    for name in heavy:
        light.ClearField(name)
    _tell(structure, light)
    for name in heavy:
        one = name in ("t", "g", "sparse_tensor")
        for item in ([getattr(attribute, name)] if attribute.HasField(name) else []) if one else getattr(attribute, name):
            _say(structure, name)
            yield from {"t": _tensor, "g": _graph, "s": _sparse}[name[0]](item, structure)


def _sparse(sparse: Any, structure: Any) -> Iterator[Any]:
    _say(structure, f"dims {list(sparse.dims)}")
    yield from _tensor(sparse.values, structure)
    yield from _tensor(sparse.indices, structure)


def _tensor(tensor: Any, structure: Any) -> Iterator[Any]:
    """Name, type and sizes belong to the graph; the numbers are the weights."""
    _say(structure, f"{tensor.name} {tensor.data_type} {list(tensor.dims)} {tensor.doc_string}")
    yield tensor


TAKEN_APART = {
    "node": _node,
    "attribute": _attribute,
    "attribute_proto": _attribute,
    "initializer": _tensor,
    "sparse_initializer": _sparse,
}


def _weigh(tensor: Any, folder: Path, weights: Any) -> None:
    """Tell the digest a tensor's numbers as the bytes that they are, in the file or beside it."""
    _say(weights, tensor.name)
    if tensor.data_location == 1:  # EXTERNAL
        for chunk in _beside(tensor, folder):
            weights.update(chunk)
    elif tensor.HasField("raw_data"):
        weights.update(tensor.raw_data)
    elif tensor.data_type == STRING:
        for text in tensor.string_data:
            _say(weights, text.hex())
    else:
        import onnx

        try:
            weights.update(onnx.numpy_helper.to_array(tensor).tobytes())
        except Exception:  # a broken tensor: what there is of it counts as it stands
            weights.update(tensor.SerializeToString(deterministic=True))


def _beside(tensor: Any, folder: Path) -> Iterator[bytes]:
    entries = {e.key: e.value for e in tensor.external_data}
    file, name = folder / entries.get("location", ""), entries.get("location", "")
    places = [entries.get(key) for key in ("offset", "length")]
    offset, length = map(whole, places)
    if any(place is not None and number is None for place, number in zip(places, (offset, length), strict=True)):
        raise WeightsUnreadable(f"`{tensor.name}` lies at {places[0]}, {places[1]} bytes long, which is no place in a file")
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        raise WeightsUnreadable(f"`{name}`, which holds the weights `{tensor.name}`, is not beside it")
    needs = length if length is not None else _needed(tensor)
    if file.stat().st_size < (offset or 0) + needs:
        raise WeightsUnreadable(f"`{name}` is cut short: `{tensor.name}` needs {(offset or 0) + needs} bytes")
    with file.open("rb") as data:
        data.seek(offset or 0)
        while needs > 0 and (chunk := data.read(min(CHUNK, needs))):
            needs -= len(chunk)
            yield chunk


def _needed(tensor: Any) -> int:
    import onnx

    count = 1
    for dim in tensor.dims:
        count *= dim
    bits = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4}.get(onnx.TensorProto.DataType.Name(tensor.data_type))
    width = bits or 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return (count * width + 7) // 8


def _tell(digest: Any, message: Any) -> None:
    data = message.SerializeToString(deterministic=True)
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def _say(digest: Any, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)
