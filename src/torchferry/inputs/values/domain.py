"""The values that the caller says there are: a range for an input, or a function that makes whole calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchferry.errors import FeedError, UsageError, did_you_mean
from torchferry.inputs.binding.feeds import Feeder
from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.values.roles import InputRole
from torchferry.inputs.values.vary import Made
from torchferry.records import Size


def within_domain(
    parts: Sequence[InputRole], names: Sequence[str], tensors: Sequence[torch.Tensor], domain: Any
) -> tuple[InputRole, ...]:
    """Return the parts with the ranges that the caller gave; UsageError where a range is about no input, or not the example's."""
    if not isinstance(domain, Mapping):
        return tuple(parts)
    for name in domain:
        if name not in names:
            raise UsageError(
                f"domain names `{name}`, which is no input{did_you_mean(name, names)}; the inputs are {', '.join(names)}"
            )
    given = [domain.get(name) for name in names]
    for name, tensor, span in zip(names, tensors, given, strict=True):
        if span is not None:
            _fits(name, tensor, span)
    return tuple(p if span is None else replace(p, domain=(span[0], span[1])) for p, span in zip(parts, given, strict=True))


def _fits(name: str, tensor: torch.Tensor, span: tuple[float, float]) -> None:
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise UsageError(f"domain gives a range for `{name}`, whose values are {str(tensor.dtype).removeprefix('torch.')}")
    outside = (tensor < span[0]) | (tensor > span[1])
    if bool(outside.any()):
        value = tensor[outside].reshape(-1)[0].item()
        raise UsageError(f"the example has {value:g} in `{name}`, outside of its domain {span[0]:g}..{span[1]:g}")


def made_by(function: Any, feeder: Feeder, shapes: Sequence[Sequence[Size]], example: Mapping[str, int]) -> Made | None:
    """Return how calls are made by the caller's function, or None where there is none; it must make one of the example."""
    if not callable(function):
        return None
    _flat(function, feeder, dict(example), 0)

    def made(sizes: Mapping[str, int], seed: int) -> tuple[torch.Tensor, ...]:
        tensors = _flat(function, feeder, dict(sizes), seed)
        wanted = [tuple(size_text.value(s, sizes) for s in shape) for shape in shapes]
        if [tuple(t.shape) for t in tensors] != wanted:
            raise ValueError(f"the caller's function makes no call of these sizes: {dict(sizes)}")
        return tensors

    return made


def _flat(function: Callable[..., Any], feeder: Feeder, sizes: dict[str, int], seed: int) -> tuple[torch.Tensor, ...]:
    try:
        call = function(sizes, seed)
    except Exception as error:  # it is the user's own, and the user is to know
        raise UsageError(f"domain({sizes}, {seed}) raised {type(error).__name__}: {error}") from error
    pair = isinstance(call, tuple) and len(call) == 2 and isinstance(call[1], Mapping)
    args, kwargs = call if pair else (call, {})
    try:
        return feeder.tensors(args, kwargs)
    except FeedError as error:
        raise UsageError(f"domain({sizes}, {seed}) gave a call that the model does not take: {error}") from error


def told(domain: Any) -> tuple[str, ...]:
    """Return what the user is to know of the values: that they were given, and which."""
    if callable(domain):
        return ("values: as given by the caller, by a function that makes the inputs",)
    spans = [f"`{name}` {low:g}..{high:g}" for name, (low, high) in (domain or {}).items()]
    return (f"values: as given by the caller, {', '.join(spans)}",) if spans else ()
