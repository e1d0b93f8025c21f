"""How a tensor of the file is made of the model's: so that other weights can be written into the file in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from torchferry.verify.arrays import Array


class Recipe(Protocol):
    """What makes a tensor of the file again from tensors of the model."""

    @property
    def origin(self) -> frozenset[str]: ...

    def made(self, tensors: Mapping[str, Array], computed: Mapping[int, Array]) -> Array | None: ...


@dataclass(frozen=True, slots=True)
class Whole:
    """One tensor, its axes in another order, its shape and dtype changed."""

    name: str
    order: tuple[int, ...]  # of the axes that are longer than one
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def origin(self) -> frozenset[str]:
        """The model's tensors that go into it."""
        return frozenset({self.name})

    def made(self, tensors: Mapping[str, Array], computed: Mapping[int, Array]) -> Array | None:
        """Return the file's tensor for other tensors of the model."""
        return reordered(tensors[self.name], self.order).reshape(self.shape).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class WeightRows:
    """Rows of one of the model's tensors: `axis` says along which; -1 along all but the last together."""

    name: str
    axis: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of several tensors, one after another along an axis: slices, concatenations, gates in another order."""

    axis: int
    pieces: tuple[WeightRows, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def origin(self) -> frozenset[str]:
        """The model's tensors that go into it."""
        return frozenset(p.name for p in self.pieces)

    def made(self, tensors: Mapping[str, Array], computed: Mapping[int, Array]) -> Array | None:
        """Return the file's tensor for other tensors of the model."""
        rows = np.concatenate([as_rows(tensors[p.name], p.axis)[p.start : p.stop] for p in self.pieces])
        if self.axis < 0:
            return rows.reshape(self.shape).astype(self.dtype, copy=False)
        moved = (self.shape[self.axis], *(s for i, s in enumerate(self.shape) if i != self.axis))
        return np.moveaxis(rows.reshape(moved), 0, self.axis).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that eager computes of its weights alone, at a place on its trace; the same for ever where no weight goes in."""

    place: int
    op: str
    origin: frozenset[str]
    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def made(self, tensors: Mapping[str, Array], computed: Mapping[int, Array]) -> Array | None:
        """Return the file's tensor for another run of eager; None where that run did not come by this place."""
        value = computed.get(self.place)
        return None if value is None else reordered(value, self.order).reshape(self.shape).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A weight, or the bias behind it, with the batch normalisation after it multiplied in."""

    weight: str | None  # None: the bias of a layer that has none of its own
    norm: str  # the path of the normalisation, with its dot
    eps: float
    order: tuple[int, ...]
    axis: int  # of the weight, along which the channels lie; -1 for a bias
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def origin(self) -> frozenset[str]:
        """The model's tensors that go into it."""
        norm = frozenset(self.norm + n for n in ("weight", "bias", "running_mean", "running_var"))
        return norm | ({self.weight} if self.weight else frozenset())

    def made(self, tensors: Mapping[str, Array], computed: Mapping[int, Array]) -> Array | None:
        """Return the file's tensor for other tensors of the model."""
        scale, shift = factors(tensors, self.norm, self.eps)
        own = tensors[self.weight].astype(np.float64) if self.weight else np.zeros(scale.shape)
        if self.axis < 0:
            return (own * scale + shift).reshape(self.shape).astype(self.dtype, copy=False)
        along = [1] * own.ndim
        along[self.axis] = -1
        return reordered(own * scale.reshape(along), self.order).reshape(self.shape).astype(self.dtype, copy=False)


def factors(tensors: Mapping[str, Array], norm: str, eps: float) -> tuple[Array, Array]:
    """Return what a batch normalisation multiplies each channel with, and what it adds, in float64."""
    mean, variance = (tensors[f"{norm}running_{n}"].astype(np.float64) for n in ("mean", "var"))
    weight, bias = (tensors[norm + n].astype(np.float64) if norm + n in tensors else None for n in ("weight", "bias"))
    scale = (1.0 if weight is None else weight) / np.sqrt(variance + eps)
    return scale, (0.0 if bias is None else bias) - mean * scale


def reordered(tensor: Array, order: tuple[int, ...]) -> Array:
    """Return a tensor without axes of one, its other axes in an order."""
    squeezed = tensor.reshape([s for s in tensor.shape if s != 1])
    return squeezed.transpose(order)


def as_rows(tensor: Array, axis: int) -> Array:
    """Return a tensor as a matrix with a row for each place along an axis; -1: along all axes but the last together."""
    if axis < 0 or tensor.ndim < 2:
        return tensor.reshape(-1, tensor.shape[-1] if tensor.ndim > 1 else 1)
    return np.moveaxis(tensor, axis, 0).reshape(tensor.shape[axis], -1)
