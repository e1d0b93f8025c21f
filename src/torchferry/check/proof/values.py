"""Feeds of other values than the user's: what holds for ones, or for zeros, may hold for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchferry.check.running.trace import Feed

Axes = Sequence[tuple[str, int]]  # (input, axis)


def drawn(feed: Feed, seed: int) -> dict[str, Any]:
    """Return a feed of the same shapes and types: floats drawn anew, whole numbers drawn from those that are there."""
    random = np.random.default_rng(seed)
    return {name: _drawn(value, random) if isinstance(value, np.ndarray) else value for name, value in feed.items()}


def _drawn(value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if not value.size:
        return value
    if value.dtype.kind == "f" or value.dtype.name.startswith("bfloat16"):
        plain = value.astype(np.float64)
        middle, spread = float(plain.mean()), float(plain.std())
        if not np.isfinite([middle, spread]).all():
            return random.permutation(value.reshape(-1)).reshape(value.shape)
        return (middle + (spread or 1.0) * random.standard_normal(value.shape)).astype(value.dtype)
    if value.dtype.kind in "iub":
        there = np.unique(np.append(value.reshape(-1), [0, 1]).astype(value.dtype))
        return random.choice(there, value.shape)
    return random.permutation(value.reshape(-1)).reshape(value.shape)


def resized(feed: Feed, axes: Axes, size: int) -> dict[str, Any]:
    """Return a feed cut, or repeated, to a size along some axes of its arrays."""
    made = dict(feed)
    for name, axis in axes:
        array = made[name]
        if array.shape[axis]:
            made[name] = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
        else:
            made[name] = np.ones((*array.shape[:axis], size, *array.shape[axis + 1 :]), array.dtype)
    return made


def taken(feed: Feed, axes: Axes, places: Sequence[int] | np.ndarray) -> dict[str, Any]:
    """Return a feed with only these places along some axes of its arrays, in this order."""
    made = dict(feed)
    for name, axis in axes:
        made[name] = np.take(made[name], np.asarray(places, np.int64), axis=axis)
    return made


def joined(first: Feed, second: Feed, axes: Axes) -> dict[str, Any]:
    """Return a feed with the places of a second one behind those of a first, along some axes of its arrays."""
    made = dict(first)
    for name, axis in axes:
        made[name] = np.concatenate([first[name], second[name]], axis=axis)
    return made


def varied(feed: Feed, axes: Axes) -> bool:
    """Say whether the places along an axis differ in some array: where they are all alike, nothing shows which is which."""
    return any(
        not np.array_equal(feed[name], np.broadcast_to(np.take(feed[name], [0], axis), feed[name].shape))
        for name, axis in axes
        if feed[name].shape[axis] > 1
    )


def changed(feed: Feed, axes: Axes, place: int) -> dict[str, Any]:
    """Return a feed with something else at one place of some axes of its arrays."""
    made, other = dict(feed), drawn(feed, 11)
    for name, axis in axes:
        at = (slice(None),) * axis + (place,)
        made[name] = feed[name].copy()
        made[name][at] = _unlike(feed[name][at], other[name][at])
    return made


def _unlike(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the new values, and where they are the old ones by chance others still."""
    if old.dtype.kind == "b":
        return ~old
    return np.where(new == old, np.where(old == 0, old + np.asarray(1, old.dtype), np.zeros_like(old)), new)
