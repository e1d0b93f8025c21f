"""Operators that users add: a decomposition in torch, an onnxscript function, or a node of a custom ONNX domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from torchferry.errors import UsageError
from torchferry.foreign.torch_onnx import custom_node
from torchferry.foreign.torch_operators import custom_bodies, schema_of

_decompositions: dict[Any, Callable[..., Any]] = {}
_translations: dict[Any, Callable[..., Any]] = {}
_libraries: dict[Any, tuple[str, str]] = {}  # operator -> domain, and the file that implements it


def register_op(
    name: str,
    *,
    decomposition: Callable[..., Any] | None = None,
    translation: Callable[..., Any] | None = None,
    domain: str | None = None,
    op_type: str | None = None,
    library: str | Path | None = None,
) -> None:
    """Tell torchferry how to convert `name` ("mylib::op" or "mylib::op.overload"); exactly one way is given.

    `decomposition`: a function of the same arguments in plain torch operators.
    `translation`: a function of the same arguments in ONNX operators (onnxscript's `opset18`, or an onnxscript function).
    `domain`: the operator becomes one node `domain::op_type` with the tensors as inputs and the rest as attributes;
    `library` is the shared library that implements it for onnxruntime, with which the file is verified.
    """
    ways = [way for way in (decomposition, translation, domain) if way is not None]
    if len(ways) != 1:
        raise UsageError(f"register_op({name!r}) takes exactly one of `decomposition`, `translation` and `domain`")
    if library is not None and domain is None:
        raise UsageError(f"register_op({name!r}): a `library` implements the operator of a `domain`")
    if library is not None and not Path(library).is_file():
        raise UsageError(f"register_op({name!r}): there is no library at {library}")
    target = _overload(name)
    forget_op(name)
    if library is not None:
        _libraries[target] = str(domain), str(Path(library).resolve())
    if decomposition is not None:
        _decompositions[target] = decomposition
    else:
        _translations[target] = translation if translation is not None else _custom_node(target, str(domain), op_type)


def forget_op(name: str) -> None:
    """Take back what `register_op` was told about `name`."""
    target = _overload(name)
    _decompositions.pop(target, None)
    _translations.pop(target, None)
    _libraries.pop(target, None)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions that users registered."""
    return dict(_decompositions)


def translations() -> dict[Any, Callable[..., Any]]:
    """Return the translations that users registered."""
    return dict(_translations)


def libraries(domains: Iterable[str]) -> list[str]:
    """Return the libraries that a session needs for nodes of these domains."""
    wanted = set(domains)
    return sorted({path for domain, path in _libraries.values() if domain in wanted})


def has_body(name: str) -> bool:
    """Whether an operator was made with `torch.library.custom_op`, so that its Python body is known."""
    return name in custom_bodies()


def bodies(names: Sequence[str]) -> dict[Any, Callable[..., Any]]:
    """Return the Python bodies of custom operators, as decompositions of them."""
    known = custom_bodies()
    return {_overload(name): known[name] for name in names}


def _overload(name: str) -> Any:
    namespace, found, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None) if found else None
    if packet is None:
        raise UsageError(f"torch knows no operator `{name}`; write it as `namespace::name`, and import its library first")
    chosen = getattr(packet, overload or "default", None)
    if chosen is None:
        raise UsageError(f"`{name}` has no overload `{overload or 'default'}`; it has {', '.join(packet.overloads())}")
    return chosen


def _custom_node(target: Any, domain: str, op_type: str | None) -> Callable[..., Any]:
    """Return a translation to one node of a custom domain, shaped by the operator's schema."""
    schema = schema_of(target)
    operator = op_type or "".join(part.capitalize() for part in schema.name.partition("::")[2].split("_"))
    tensors = {a.name for a in schema.arguments if "Tensor" in str(a.type)}

    def translation(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip([a.name for a in schema.arguments], args, strict=False)), **kwargs}
        inputs = [value for name, value in given.items() if name in tensors]
        attributes = {name: value for name, value in given.items() if name not in tensors and value is not None}
        return custom_node(domain, operator, inputs, attributes, len(schema.returns))

    translation.__name__ = operator
    return translation
