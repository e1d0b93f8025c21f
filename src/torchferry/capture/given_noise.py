"""A model that draws random numbers, as one that is given them: each draw becomes an input, and all else is as before.

A draw of a normal distribution takes standard normal numbers, every other one numbers from 0 up to 1, from which it makes its
own. The names of the inputs say which: `normal_noise_0`, `uniform_noise_0`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from torchferry import eager
from torchferry.errors import UsageError
from torchferry.foreign.torch_dispatch import without_torch_function

Kind = Literal["normal", "uniform"]


class WithNoise(torch.nn.Module):
    """A model and the names of its draws, which are keyword arguments of `forward` beside the model's own."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names
        self.train(model.training)
        self.forward = _with_signature(self._run, inspect.signature(model.forward), names)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        noise = {name: kwargs.pop(name) for name in self.names}
        with Draws(noise):
            return self.model(*args, **kwargs)


def as_inputs(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[WithNoise, dict[str, Any]]:
    """Return the model as one that is given its noise, and the example's keyword arguments with noise among them."""
    if not isinstance(model, torch.nn.Module):
        raise UsageError('noise="input" needs a module: wrap the function in an nn.Module')
    given = drawn(model, args, kwargs)
    if not given:
        raise UsageError('noise="input", but the model drew no random numbers that torchferry knows of; leave it out')
    return WithNoise(model, tuple(given)), {**kwargs, **given}


def drawn(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the noise of each draw that a call makes, by the name of the input that takes it."""
    draws, copied = Draws(), eager.fresh(model)

    def run() -> tuple[()]:
        copied(*copy.deepcopy(args), **copy.deepcopy(dict(kwargs)))
        return ()

    with eager.untouched(model), draws:
        eager.call(run, (), of=copied)
    return draws.given


def _with_signature(function: Callable[..., Any], signature: inspect.Signature, names: tuple[str, ...]) -> Callable[..., Any]:
    @functools.wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    noise = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    forward.__signature__ = signature.replace(parameters=[*own, *noise, *rest])  # type: ignore[attr-defined]
    return forward


class Draws(TorchFunctionMode):
    """Takes the place of torch's random functions: hands out the noise given for each draw, or draws it and keeps it."""

    def __init__(self, noise: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        self.noise = None if noise is None else list(noise.items())
        self.given: dict[str, Tensor] = {}

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        drawn = DRAWN.get(func)
        if drawn is None:
            return func(*args, **(kwargs or {}))
        with without_torch_function():
            return drawn(self, *args, **(kwargs or {}))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if error is None and self.noise is not None and len(self.given) != len(self.noise):
            raise ValueError(f"the model draws {len(self.given)} times here, and was given noise for {len(self.noise)} draws")

    def take(self, kind: Kind, shape: Any, dtype: torch.dtype) -> Tensor:
        """Return the noise for the next draw."""
        number = len(self.given)
        if self.noise is None:
            made = (torch.randn if kind == "normal" else torch.rand)(list(shape), dtype=dtype)
            self.given[f"{kind}_noise_{number}"] = made
            return made
        if number >= len(self.noise):
            raise ValueError(f"the model draws more often than the {len(self.noise)} times of the example")
        name, value = self.noise[number]
        if value.dim() != len(shape) or any(a != b for a, b in zip(value.shape, shape, strict=True)):
            raise ValueError(f"`{name}` has the shape {list(value.shape)}, and the model draws {list(shape)}")
        self.given[name] = value
        return value.to(dtype)


def _sizes(sizes: tuple[Any, ...], size: Any) -> list[Any]:
    if size is not None:
        return list(size)
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else list(sizes)


def _made(kind: Kind) -> Callable[..., Tensor]:
    """`torch.randn(2, 3)`, `torch.rand((2, 3))`."""

    def draw(draws: Draws, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None, **where: Any) -> Tensor:
        return draws.take(kind, _sizes(sizes, size), dtype or torch.get_default_dtype())

    return draw


def _alike(kind: Kind) -> Callable[..., Tensor]:
    """`torch.randn_like(x)`."""

    def draw(draws: Draws, like: Tensor, *, dtype: torch.dtype | None = None, **where: Any) -> Tensor:
        return draws.take(kind, like.shape, dtype or like.dtype)

    return draw


def _normal(draws: Draws, mean: Any = 0.0, std: Any = 1.0, size: Any = None, **where: Any) -> Tensor:
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        shape = torch.broadcast_shapes(*(t.shape for t in (mean, std) if isinstance(t, Tensor)))
        dtype = mean.dtype if isinstance(mean, Tensor) else std.dtype
    else:
        shape, dtype = size, where.get("dtype") or torch.get_default_dtype()
    return draws.take("normal", shape, dtype) * std + mean


def _bernoulli(draws: Draws, input: Tensor, p: float | None = None, **where: Any) -> Tensor:
    return (draws.take("uniform", input.shape, input.dtype) < (input if p is None else p)).to(input.dtype)


def _coin(draws: Draws, like: Tensor, p: Any = 0.5) -> Tensor:
    return (draws.take("uniform", like.shape, torch.float32) < p).to(like.dtype)


def _multinomial(draws: Draws, input: Tensor, num_samples: int, replacement: bool = False, **where: Any) -> Tensor:
    """Where the running sum of the weights passes the noise; without replacement, the largest of weights with Gumbel noise."""
    if replacement or num_samples == 1:
        sums = input.cumsum(-1)
        drawn = draws.take("uniform", [*input.shape[:-1], num_samples], input.dtype) * sums[..., -1:]
        return (sums.unsqueeze(-2) <= drawn.unsqueeze(-1)).sum(-1).clamp(max=input.shape[-1] - 1)
    drawn = draws.take("uniform", input.shape, input.dtype).clamp(torch.finfo(input.dtype).tiny, 1 - torch.finfo(input.dtype).eps)
    return (torch.log(input) - torch.log(-torch.log(drawn))).topk(num_samples, -1).indices


def _randint(draws: Draws, low: Any, high: Any = None, size: Any = None, *, dtype: Any = None, **where: Any) -> Tensor:
    if size is None:  # torch.randint(high, size)
        low, high, size = 0, low, high
    return torch.floor(draws.take("uniform", size, torch.float64) * (high - low) + low).to(dtype or torch.int64)


def _randperm(draws: Draws, n: Any, *, dtype: Any = None, **where: Any) -> Tensor:
    return draws.take("uniform", [n], torch.float32).argsort().to(dtype or torch.int64)


def _dropout(draws: Draws, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if not training or p == 0:
        return input
    kept = draws.take("uniform", input.shape, input.dtype) >= p
    return input * kept / (1 - p) if p < 1 else input * 0


def _in_place(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`x.normal_()`: the numbers go into x."""

    def draw(draws: Draws, tensor: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        return tensor.copy_(make(draws, tensor, *args, **kwargs))

    return draw


def _uniform(draws: Draws, like: Tensor, low: float = 0.0, high: float = 1.0, **kwargs: Any) -> Tensor:
    low, high = kwargs.get("from", low), kwargs.get("to", high)
    return draws.take("uniform", like.shape, like.dtype) * (high - low) + low


def _exponential(draws: Draws, like: Tensor, lambd: float = 1.0) -> Tensor:
    return -torch.log1p(-draws.take("uniform", like.shape, like.dtype)) / lambd


def _gaussian(draws: Draws, like: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    return draws.take("normal", like.shape, like.dtype) * std + mean


def _log_normal(draws: Draws, like: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    return torch.exp(_gaussian(draws, like, mean, std))


def _cauchy(draws: Draws, like: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    return median + sigma * torch.tan(math.pi * (draws.take("uniform", like.shape, like.dtype) - 0.5))


DRAWN: dict[Any, Callable[..., Tensor]] = {
    torch.randn: _made("normal"),
    torch.rand: _made("uniform"),
    torch.randn_like: _alike("normal"),
    torch.rand_like: _alike("uniform"),
    torch.normal: _normal,
    torch.bernoulli: _bernoulli,
    Tensor.bernoulli: _bernoulli,
    torch.multinomial: _multinomial,
    Tensor.multinomial: _multinomial,
    torch.randint: _randint,
    torch.randperm: _randperm,
    functional.dropout: _dropout,
    torch.dropout: _dropout,
    Tensor.normal_: _in_place(_gaussian),
    Tensor.uniform_: _in_place(_uniform),
    Tensor.exponential_: _in_place(_exponential),
    Tensor.log_normal_: _in_place(_log_normal),
    Tensor.cauchy_: _in_place(_cauchy),
    Tensor.bernoulli_: _in_place(_coin),
}
