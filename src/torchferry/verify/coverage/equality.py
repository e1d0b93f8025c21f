"""Whether two tensors hold the same numbers: byte for byte, with the axes in any order and in any shape; or but for rounding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from torchferry.verify.arrays import Array, is_float
from torchferry.verify.coverage.recipes import reordered

SAMPLES = 48  # places that are looked at before all are
BLOCK = 2**20  # numbers compared at a time, so that a large weight is never copied
MOST_AXES = 4  # beyond that not every order of the axes is tried
ROUNDING = {8: 1e-12, 4: 1e-5, 2: 2e-3}  # relative, by bytes of a number: what computing it in another way may change


def orders(axes: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of so many axes, the likely ones first."""
    plain = tuple(range(axes))
    yield plain
    if axes > 1:
        yield from (o for o in itertools.permutations(plain) if o != plain and (axes <= MOST_AXES or o[:-2] == plain[:-2]))


def same_but_for_order(stored: Array, tensor: Array) -> tuple[int, ...] | None:
    """Return the order of `tensor`'s axes in which it is `stored` byte for byte, whatever the shapes; None if there is none."""
    for order in orders(sum(s != 1 for s in tensor.shape)):
        turned = reordered(tensor, order)
        if sampled(stored, turned) == 1.0 and equal(stored, turned):
            return order
    return None


def close_but_for_order(stored: Array, tensor: Array) -> tuple[int, ...] | None:
    """Return the order of axes in which the two are the same but for rounding; whole numbers have none."""
    for order in orders(sum(s != 1 for s in tensor.shape)):
        turned = reordered(tensor, order)
        if close(stored, turned):
            return order
    return None


def sampled(stored: Array, turned: Array) -> float:
    """Return the share of some places at which two tensors of one size have the same number."""
    turned = turned.reshape(turned.shape or (1,))
    even = np.linspace(0, stored.size - 1, SAMPLES).astype(np.int64)
    places = np.unique(np.concatenate([even, (even * 7919 + 13) % stored.size]))
    one, two = stored.reshape(-1)[places], turned[np.unravel_index(places, turned.shape)]
    return float(_alike(one, two.astype(stored.dtype, copy=False)).mean())


def equal(stored: Array, turned: Array) -> bool:
    """Return whether two tensors of one size hold the same numbers, in the dtype of the first; block by block."""
    return all(bool(_alike(one, two).all()) for one, two in blocks(stored, turned))


def close(stored: Array, turned: Array) -> bool:
    """Return whether two tensors of one size are the same but for rounding."""
    if not is_float(stored) or not is_float(turned):
        return equal(stored, turned)
    scale = float(np.max(np.abs(np.nan_to_num(turned, posinf=0.0, neginf=0.0)), initial=0.0))
    slack = ROUNDING.get(min(stored.dtype.itemsize, turned.dtype.itemsize), 0.1)
    for one, two in blocks(stored, turned):
        a, b = one.astype(np.float64), two.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= slack * (np.abs(b) + 0.01 * scale)
        if not (near | _alike(a, b)).all():
            return False
    return True


def blocks(stored: Array, turned: Array) -> Iterator[tuple[Array, Array]]:
    """Yield both tensors a block at a time, the second in the shape of the first and in its dtype."""
    if not turned.ndim:
        yield stored.reshape(()), turned.astype(stored.dtype, copy=False)
        return
    rows = stored.reshape(turned.shape)
    step = max(1, BLOCK // max(1, turned[0].size))
    for start in range(0, turned.shape[0], step):
        yield rows[start : start + step], turned[start : start + step].astype(stored.dtype, copy=False)


def total(tensor: Array) -> int:
    """Return the sum of a tensor's bits: the same for the same numbers in any order."""
    flat = tensor.ravel(order="K")
    return int(flat.view(f"u{flat.dtype.itemsize}").sum(dtype=np.uint64))


def uniform(tensor: Array) -> bool:
    """Return whether a tensor is one number over and over."""
    flat = tensor.reshape(-1)
    return bool((flat[:SAMPLES] == flat[0]).all() and (flat == flat[0]).all())


def fingerprint(tensor: Array) -> object:
    """Return what two equal tensors have in common and two others hardly ever: some of their numbers."""
    places = np.linspace(0, tensor.size - 1, SAMPLES).astype(np.int64)
    shaped = tensor.reshape(tensor.shape or (1,))
    return tensor.shape, tensor.dtype, shaped[np.unravel_index(places, shaped.shape)].tobytes()


def _alike(one: Array, two: Array) -> Array:
    same = np.asarray(one == two)
    return same | (np.isnan(one) & np.isnan(two)) if is_float(one) else same
