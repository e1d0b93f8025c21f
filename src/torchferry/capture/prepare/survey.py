"""What in a module a capture must be prepared for, seen without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from torchferry.capture.prepare import baked, dense, encoder, sources
from torchferry.capture.prepare.quantised import is_quantised
from torchferry.capture.prepare.script import is_script
from torchferry.foreign.torch_modules import tables_of
from torchferry.quantised import fake
from torchferry.records import Finding, Location

# what to look for in the user's own classes: kind of finding -> pattern
_IN_SOURCE = {
    "gradient-inside": r"autograd\.grad\(|\.backward\(|func\.(grad|jacrev|jacfwd|vjp|jvp|hessian)\b|autograd\.functional\.",
    "packs-sequences": r"pack_padded_sequence\(|pack_sequence\(",
    "sparse-function": r"torch\.sparse|sparse_(coo|csr|csc)_tensor|to_sparse|\.coalesce\(",
    "nested-tensor": r"torch\.nested|nested_tensor\(|to_padded_tensor\(",
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
                yield Finding("script-part", location, {"type": str(part.original_name)})
            continue
        if is_quantised(part):
            yield _quantised(path, parts)
        if fake.observes(part):
            yield Finding("observer-on", location, {"type": type(part).__name__})
        if encoder.is_affected(part):
            yield Finding("encoder-fast-path", location, {"layers": len(part.layers)})  # type: ignore[arg-type]
        if baked.is_parametrised(part):
            yield Finding("parametrised", location, {"weights": sorted(part.parametrizations)})  # type: ignore[arg-type, call-overload]
        for name, value in (item for table in (*tables_of(part), vars(part)) for item in table.items()):
            if dense.is_sparse(value):
                yield Finding("sparse-tensor", location, {"name": name, "layout": str(value.layout)})


def _above(path: str) -> list[str]:
    steps = path.split(".")
    return [".".join(steps[:n]) for n in range(len(steps))]


def _quantised(path: str, parts: dict[str, nn.Module]) -> Finding:
    """Return the layer that users know, not the holder of packed weights inside it."""
    while type(parts[path]).__name__ in _HOLDERS and "." in path:
        path = path.rpartition(".")[0]
    kind = type(parts[path])
    facts = {"type": f"{kind.__module__.removesuffix('.modules.' + kind.__module__.rpartition('.')[2])}.{kind.__name__}"}
    return Finding("quantised-part", Location(module_path=path.removeprefix("model.")), facts)


def _source(module: nn.Module) -> Iterator[Finding]:
    for kind, pattern in _IN_SOURCE.items():
        for location, code in sources.using(module, pattern):
            yield Finding(kind, location, {"code": code})
