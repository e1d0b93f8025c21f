"""What in a module a capture must be prepared for, seen without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from torchferry.capture.prepare import baked, sources
from torchferry.capture.prepare.quantised import is_quantised
from torchferry.capture.prepare.script import is_script
from torchferry.foreign.torch_modules import tables_of
from torchferry.ops.prepared import dense, encoder
from torchferry.records import Finding, Location
from torchferry.records.findings import (
    EncoderFastPath,
    GradientInside,
    NestedTensor,
    Parametrised,
    QuantisedPart,
    ScriptPart,
    SparseFunction,
    SparseTensor,
)

# what to look for in the user's own classes
_IN_SOURCE: dict[type[GradientInside | SparseFunction | NestedTensor], str] = {
    GradientInside: r"autograd\.grad\(|\.backward\(|func\.(grad|jacrev|jacfwd|vjp|jvp|hessian)\b|autograd\.functional\.",
    SparseFunction: r"torch\.sparse|sparse_(coo|csr|csc)_tensor|to_sparse|\.coalesce\(",
    NestedTensor: r"torch\.nested|nested_tensor\(|to_padded_tensor\(",
}

_HOLDERS = ("LinearPackedParams", "PackedParameter", "EmbeddingPackedParams", "ModuleList")


def survey(module: nn.Module, args: tuple[Any, ...]) -> tuple[Finding, ...]:
    """Return what stands out in the model's parts and in the source of their classes."""
    return (*_parts(module), *_source(module))


def _parts(module: nn.Module) -> Iterator[Finding]:
    parts = dict(module.named_modules())
    for path, part in parts.items():
        location = Location(module_path=path.removeprefix("model.") or "model")
        if is_script(part):
            if not any(is_script(parts[above]) for above in _above(path)):
                yield ScriptPart(str(part.original_name), location=location)
            continue
        if is_quantised(part):
            yield _quantised(path, parts)

        if encoder.is_affected(part):
            yield EncoderFastPath(location=location)
        if baked.is_parametrised(part):
            yield Parametrised(location=location)
        for name, value in (item for table in (*tables_of(part), vars(part)) for item in table.items()):
            if dense.is_sparse(value):
                yield SparseTensor(name, str(value.layout), location=location)


def _above(path: str) -> list[str]:
    steps = path.split(".")
    return [".".join(steps[:n]) for n in range(len(steps))]


def _quantised(path: str, parts: dict[str, nn.Module]) -> QuantisedPart:
    """Return the layer that users know, not the holder of packed weights inside it."""
    while type(parts[path]).__name__ in _HOLDERS and "." in path:
        path = path.rpartition(".")[0]
    kind = type(parts[path])
    home = kind.__module__.removesuffix(".modules." + kind.__module__.rpartition(".")[2])
    return QuantisedPart(f"{home}.{kind.__name__}", location=Location(module_path=path.removeprefix("model.")))


def _source(module: nn.Module) -> Iterator[Finding]:
    for kind, pattern in _IN_SOURCE.items():
        for location, code in sources.using(module, pattern):
            yield kind(code, location=location)
