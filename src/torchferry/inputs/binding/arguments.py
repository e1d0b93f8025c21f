"""The user's arguments, in any form that torch.onnx.export takes, bound to the model's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchferry.errors import UsageError, did_you_mean
from torchferry.inputs.binding import trees

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to take the arguments: what goes by position and what by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    how: str = "as given"


def readings(signature: inspect.Signature, args: Any, kwargs: Mapping[str, Any]) -> list[Reading]:
    """Return the ways in which the arguments fit the signature, the likeliest first; UsageError when there is none."""
    possible = list(_spellings(signature, args, dict(kwargs)))
    fitting = [r for r in possible if _fits(signature, r) is None]
    if not fitting:
        raise UsageError(_refusal(signature, possible[0]))
    return fitting


def by_name(signature: inspect.Signature, reading: Reading, names: list[str]) -> Reading | None:
    """Return the reading in which the first positional arguments go to the named parameters, or None if it does not fit."""
    if not names or len(names) > len(reading.args):
        return None
    rest = reading.args[len(names) :]
    moved = Reading(
        () if not rest else reading.args, {**dict(zip(names, reading.args, strict=False)), **reading.kwargs}, "by name"
    )
    return moved if not rest and _fits(signature, moved) is None else None


def leaves(signature: inspect.Signature, reading: Reading) -> tuple[trees.Parts, tuple[trees.Tree, ...], dict[str, trees.Tree]]:
    """Return the arguments' leaves, named after the parameters, and the trees of the positional and the named ones."""
    parts: trees.Parts = []
    positional = []
    for name, value in zip(positional_names(signature, len(reading.args)), reading.args, strict=True):
        found, tree = trees.flatten(value, name)
        parts += found
        positional.append(tree)
    named = {}
    for name, value in reading.kwargs.items():
        found, tree = trees.flatten(value, name)
        parts += found
        named[name] = tree
    return parts, tuple(positional), named


def positional_names(signature: inspect.Signature, count: int) -> list[str]:
    """Return what the first `count` positional arguments are called."""
    names = [p.name for p in signature.parameters.values() if p.kind in POSITIONAL]
    star = next((p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return [*names, *(f"{star}.{i}" for i in range(count - len(names)))][:count]


def parameter_names(signature: inspect.Signature) -> list[str]:
    """Return the names by which arguments can be passed."""
    return [
        p.name
        for p in signature.parameters.values()
        if p.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    ]


def _spellings(signature: inspect.Signature, args: Any, kwargs: dict[str, Any]) -> Iterator[Reading]:
    known = set(parameter_names(signature))
    if isinstance(args, Mapping) or (hasattr(args, "data") and hasattr(args, "keys") and not hasattr(args, "shape")):
        keywords = Reading((), {**{str(k): args[k] for k in args}, **kwargs}, "dict as keywords")
        whole = Reading((args,), kwargs, "dict as one argument")
        yield from (keywords, whole) if set(keywords.kwargs) <= known else (whole, keywords)
    elif isinstance(args, list):
        yield Reading(tuple(args), kwargs, "list as arguments")
        yield Reading((args,), kwargs, "list as one argument")
    elif not isinstance(args, tuple) or hasattr(args, "_fields"):
        yield Reading((args,), kwargs)
    elif args and isinstance(args[-1], dict) and all(isinstance(k, str) for k in args[-1]):
        given = Reading(args, kwargs)
        split = Reading(args[:-1], {**args[-1], **kwargs}, "last dict as keywords")
        yield from (split, given) if set(args[-1]) <= known else (given, split)
    else:
        yield Reading(args, kwargs)


def _fits(signature: inspect.Signature, reading: Reading) -> TypeError | None:
    try:
        signature.bind(*reading.args, **reading.kwargs)
    except TypeError as error:
        return error
    return None


def _refusal(signature: inspect.Signature, reading: Reading) -> str:
    """Return in words why arguments do not fit."""
    known = parameter_names(signature)
    wanted = f"the model takes ({', '.join(str(p) for p in signature.parameters.values())})"
    if not reading.args and not reading.kwargs:
        return f"the model needs an example input: {wanted}; pass `args` (a tensor or a tuple)"
    for name in reading.kwargs:
        if name not in known:
            return f"the model has no parameter `{name}`{did_you_mean(name, known)}: {wanted}"
    return f"the example does not fit the model: {_fits(signature, reading)}; {wanted}"
