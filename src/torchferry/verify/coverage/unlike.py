"""How a weight of the file that is not the model's differs from the one that it must stand for, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from torchferry.verify.arrays import Array, is_float
from torchferry.verify.coverage.equality import ROUNDING, blocks, orders, sampled
from torchferry.verify.coverage.recipes import Normalised, Whole, reordered
from torchferry.verify.coverage.stored import Stored
from torchferry.verify.coverage.weights import Weights

TELLING = 0.1  # the share of equal numbers from which on chance is no explanation, for the tensor that it must stand for
MOSTLY = 0.9  # the same for any other, for whole numbers, and where most numbers are zeros and ones
DIFFERENT = 3  # numbers that must be among the equal ones: a few levels over and over are equal by chance
FEW = 3  # numbers that are counted one by one
ENDLESS = 1e30  # as good as infinite
TINY = 1e-37  # numbers below which some kernels give zero


@dataclass(frozen=True, slots=True)
class Unlike:
    """A weight of the file beside the model's nearest one."""

    stored: Stored
    near: Whole | Normalised  # how it would be made of the model's
    count: int  # numbers that differ
    axis: int  # of the model's tensor, along which the fewest places have such a number
    places: tuple[int, ...]  # along that axis
    first: tuple[int, ...]  # the place of the first such number, in the model's tensor
    shape: tuple[int, ...]  # of the model's tensor
    changed: bool  # it is the model's tensor with some numbers changed: no export gives that

    @property
    def name(self) -> str:
        """The model's own name for it, in words."""
        if isinstance(self.near, Whole):
            return f"`{self.near.name}`"
        norm = f"`{self.near.norm.rstrip('.')}`"
        return f"`{self.near.weight}` with {norm} folded in" if self.near.weight else f"what {norm} adds"

    @property
    def words(self) -> str:
        """Return what differs: "1 of 50000 rows, first at [12345, 0]"."""
        at = f"first at {list(self.first)}"
        if self.count == self.stored.size:
            return "every value"
        if self.count > FEW and len(self.shape) > 1 and len(self.places) < self.shape[self.axis]:
            what = "rows" if self.axis == 0 else "columns" if len(self.shape) == 2 else f"places along axis {self.axis}"
            return f"{len(self.places)} of {self.shape[self.axis]} {what}, {at}"
        return f"{self.count} of {self.stored.size} values, {at}"


def unlike(work: Weights) -> Iterator[Unlike]:
    """Yield, for each weight that was not found in the model, the nearest that the model has; none where none is near."""
    unfound = set(work.unfound)
    for one in work.missing:
        values, own = one.values(), work.names.get(one.name)
        alike = [n for n, t in work.tensors.items() if t.size == one.size and is_float(t) == one.is_float]
        meant = {n for n in alike if n == own or n in unfound}
        found = [beside(one, values, n, work.tensors[n], n in meant) for n in alike if n not in work.seen.written]
        telling = [f for f in found if f is not None and (f.changed or f.near.origin & meant)]
        if telling:
            yield min(telling, key=lambda f: (own not in f.near.origin, not f.changed, f.count))


def beside(one: Stored, values: Array, name: str, tensor: Array, meant: bool) -> Unlike | None:
    """Return how a tensor differs from one of the model's of its size, in the order of axes that fits best."""
    squeezed = [s for s in tensor.shape if s != 1]
    shaped = [s for s in one.shape if s != 1]
    fitting = [o for o in orders(len(squeezed)) if [squeezed[i] for i in o] == shaped] or [tuple(range(len(squeezed)))]
    order = max(fitting, key=lambda o: sampled(values, reordered(tensor, o)))
    turned = reordered(tensor, order)
    unequal = np.concatenate([_differ(a, b).reshape(-1) for a, b in blocks(values, turned)])
    count = int(unequal.sum())
    if not count:
        return None
    back = unequal.reshape(turned.shape).transpose(np.argsort(order)) if squeezed else unequal
    at = np.argwhere(back.reshape(tensor.shape or (1,)))
    along = [np.unique(at[:, axis]) for axis in range(at.shape[1])]
    axis = min(range(len(along)), key=lambda i: len(along[i]) / (tensor.shape or (1,))[i])
    places, first = tuple(int(p) for p in along[axis]), tuple(int(i) for i in at[0])
    changed = _changed(values, unequal.reshape(values.shape), meant and one.is_float)
    return Unlike(one, Whole(name, order, one.shape, one.dtype), count, axis, places, first, tensor.shape or (1,), changed)


def _changed(values: Array, unequal: Array, meant: bool) -> bool:
    """Return whether so much is equal that the rest was changed: no export gives that."""
    rich = ~_plain(values)
    shared = values[rich & ~unequal]
    if rich.sum() <= values.size // 4:
        return bool(unequal.mean() <= 1 - MOSTLY)
    return bool(shared.size >= (TELLING if meant else MOSTLY) * rich.sum() and len(np.unique(shared[:4096])) >= DIFFERENT)


def _plain(values: Array) -> Array:
    """Return where a tensor has numbers that many have: zeros, ones, and what stands for infinity."""
    with np.errstate(invalid="ignore"):
        return np.asarray((values == 0) | (np.abs(values) == 1) | _endless(values))


def _endless(values: Array) -> Array:
    """Return where numbers are infinite, or as far out as their dtype goes: so masks say "nothing"."""
    if not is_float(values):
        return np.zeros(values.shape, bool)
    wide = values.astype(np.float64)
    return ~(np.abs(wide) < min(ENDLESS, 0.9 * float(ml_dtypes.finfo(values.dtype).max)))


def _differ(one: Array, two: Array) -> Array:
    """Return where two tensors differ by more than rounding; two numbers that both stand for infinity do not."""
    if not is_float(one):
        return np.asarray(one != two)
    a, b = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(a - b) <= ROUNDING.get(one.dtype.itemsize, 0.1) * np.abs(b) + TINY)
        endless = _endless(one) & _endless(two) & (np.sign(a) == np.sign(b))
    return np.asarray(far & ~((a == b) | (np.isnan(a) & np.isnan(b)) | endless))
