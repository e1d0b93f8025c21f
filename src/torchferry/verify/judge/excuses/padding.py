"""Padding: what stands at a padded position is made of what lies under the mask, which nobody looks at.

Which positions are padded, and whether a mask is one of padding at all, is not told by its name but by runs of eager:
- garbage under the mask changes no real position: the model does not look there;
- it changes the very elements that differ: eager's numbers there are garbage too, as NaN is where no token is seen. Zeros
  or -100 written over padding are not;
- with the mask taken away, the same garbage does change real positions: it is this mask that hides those tokens from the
  others. A mask that says which pixels are to be made up, which words occur, or which nodes are joined does no such thing;
- those elements see what is hidden: they change with garbage at another token that the mask has been made to hide. A gap
  that is to be filled in from what was observed, and from its own old value, does not. Or they hang on attention that has
  nothing to look at, as before the first token of a text that is padded on the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from torchferry.records import Fault
from torchferry.verify.arrays import Array, array, is_float
from torchferry.verify.judge.compare import wrong as differing
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea, Proof
from torchferry.verify.run.blind_attention import SOFTMAX, with_blind_rows_moved
from torchferry.verify.run.both_sides import Call
from torchferry.verify.trials.padding_garbage import LOUD

ASKED = 3  # trials in which an input is asked whether it hides others; what it hides in one, it hides


def prove(plea: Plea) -> Proof | None:
    """Return which numbers stand at padded positions and are garbage in eager too."""
    for reading in _readings(plea.args):
        found = _garbage(plea, reading)
        if found is not None and any((f & o).any() for f, o in zip(found, plea.open, strict=True)):
            elements = [f & o for f, o in zip(found, plea.open, strict=True)]
            return Proof(elements, "the outputs differ only at padded positions", "padding-only")
    return None


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to take an input for a token mask: which input it is, and the number that marks padding."""

    place: int
    pad: int

    @property
    def real(self) -> int:
        """A number that marks a real token; of packed rows there are others beside 1."""
        return 1 - self.pad

    def tokens(self, args: Call) -> Array:
        """Return where tokens are real, as booleans of (batch, length)."""
        return np.asarray(array(args[self.place]) != self.pad)


def _readings(args: Call) -> Iterator[_Reading]:
    """Yield each input that may be a token mask, once for each way to read it."""
    for place, arg in enumerate(args):
        if arg.dim() != 2 or not arg.numel() or not bool(((arg >= 0) & (arg == arg.long())).all()):
            continue
        pads = (0, 1) if int(arg.max()) <= 1 else (0,)
        yield from (_Reading(place, pad) for pad in pads if bool((arg == pad).any()))


def _garbage(plea: Plea, mask: _Reading) -> list[Array] | None:
    """Return which elements of eager's outputs are made of what lies under a mask; None where it is no mask of padding."""
    known = plea.bench.masks
    if known.setdefault(mask, (frozenset(), 0))[1] < ASKED and not known[mask][0]:
        hidden = next((h for args in _calls(plea) if (h := _hidden(plea, args, mask))), frozenset())
        known[mask] = hidden, known[mask][1] + 1
    hidden = known[mask][0]
    real = mask.tokens(plea.args)
    runs = [plea.bench.sides.eager(made) for made in _loud(plea.args, hidden, real)]
    seeing = _seeing(plea, mask, hidden)
    if not runs or any(isinstance(r, Fault) for r in runs) or seeing is None:
        return None
    blind = _blind(plea)
    found = []
    for n, want in enumerate(plea.want):
        changed = np.zeros(want.shape, bool)
        for run in runs:
            if isinstance(run, Fault) or run[n].shape != want.shape:
                return None
            changed |= differing(want, run[n], plea.bench.allowed[n])
        tokens = _tokens(want, real)
        if (changed & tokens).any():  # a real position hangs on what lies there
            return None
        changed &= seeing[n] | blind[n] | _empty_rows(want, real)
        found.append(changed | (~tokens & np.isnan(want)) if is_float(want) else changed)
    return found


def _seeing(plea: Plea, mask: _Reading, hidden: frozenset[int]) -> list[Array] | None:
    """Return which elements of eager's outputs change with a token of their row that the mask hides: one more than it did."""
    real, sides = mask.tokens(plea.args), plea.bench.sides
    one_more = np.zeros_like(real)
    one_more[np.arange(len(real)), real.argmax(axis=1)] = True
    one_more &= real
    masked = torch.where(torch.from_numpy(one_more), torch.full_like(plea.args[mask.place], mask.pad), plea.args[mask.place])
    args = tuple(masked if n == mask.place else a for n, a in enumerate(plea.args))
    runs = [sides.eager(made) for made in (args, *_loud(args, hidden, ~one_more))]
    if any(isinstance(r, Fault) or [o.shape for o in r] != [w.shape for w in plea.want] for r in runs):
        return None
    first, *others = (r for r in runs if not isinstance(r, Fault))
    return [
        np.any([differing(f, o[n], allowed) for o in others], axis=0) if others else np.zeros(f.shape, bool)
        for n, (f, allowed) in enumerate(zip(first, plea.bench.allowed, strict=True))
    ]


def _blind(plea: Plea) -> list[Array]:
    """Return which elements of eager's outputs hang on attention that has nothing to look at."""
    attends = plea.bench.traits.attends or SOFTMAX in plea.bench.traits.ops
    runs = with_blind_rows_moved(plea.bench.sides.bound.module, plea.args) if attends else []
    if not runs or any([o.shape for o in run] != [w.shape for w in plea.want] for run in runs):
        return [np.zeros(w.shape, bool) for w in plea.want]
    plain, *others = runs
    return [
        np.any([differing(one, other[n], allowed) for other in others], axis=0)
        for n, (one, allowed) in enumerate(zip(plain, plea.bench.allowed, strict=True))
    ]


def _empty_rows(output: Array, real: Array) -> Array:
    """Return which elements belong to rows without any token."""
    if not output.ndim or output.shape[0] != len(real):
        return np.zeros(output.shape, bool)
    return np.broadcast_to(~real.any(axis=1).reshape((-1,) + (1,) * (output.ndim - 1)), output.shape)


def _calls(plea: Plea) -> Iterator[Call]:
    """Yield calls that may show what a mask hides: with huge values, or where rows are empty or whole, this one may not."""
    yield plea.args
    yield plea.bench.sides.bound.args
    for values in ("right-padded", "random-mask"):
        with suppress(ValueError):
            yield plea.bench.sides.bound.vary(dict(plea.plan.sizes), values, plea.plan.seed)


def _hidden(plea: Plea, args: Call, mask: _Reading) -> frozenset[int]:
    """Return the inputs that a mask hides: with the mask taken away, what they hold at padded places changes real ones."""
    sides, real = plea.bench.sides, mask.tokens(args)
    bare = tuple(torch.full_like(a, mask.real) if n == mask.place else a for n, a in enumerate(args))
    seen = sides.eager(bare)
    if isinstance(seen, Fault):
        return frozenset()
    return frozenset(
        n
        for n in range(len(args))
        if n != mask.place
        for made in _loud(bare, frozenset({n}), real)[:1]
        if not isinstance(other := sides.eager(made), Fault)
        for w, o, allowed in zip(seen, other, plea.bench.allowed, strict=True)
        if w.shape == o.shape and bool((differing(w, o, allowed) & _tokens(w, real)).any())
    )


def _tokens(output: Array, real: Array) -> Array:
    """Return which elements of an output may stand for real tokens: all but those at padded positions of a token axis.

    A row without any token is padding whatever its axes are.
    """
    rows = real.shape[0]
    if not output.ndim or output.shape[0] != rows:
        return np.ones(output.shape, bool)
    axes = [a for a in range(1, output.ndim) if output.shape[a] == real.shape[1]]
    pads = _empty_rows(output, real)
    for axis in axes:
        shape = [1] * output.ndim
        shape[0], shape[axis] = real.shape
        pads = pads | np.broadcast_to(~real.reshape(shape), output.shape)
    new = output.shape[1] if output.ndim > 2 else 0
    if not axes and 0 < new < real.shape[1]:  # the mask also covers the past that was given; the output speaks of the new tokens
        pads = pads | np.broadcast_to(~real[:, -new:].reshape((rows, new) + (1,) * (output.ndim - 2)), output.shape)
    return np.asarray(~pads)


def _loud(args: Call, hidden: frozenset[int], real: Array) -> list[Call]:
    """Return the call with other values of some inputs where tokens are not real: loud ones, and those of other tokens."""
    pads = [_pads(a, real, args) if n in hidden else None for n, a in enumerate(args)]
    if all(p is None for p in pads):
        return []
    return [
        tuple(a if p is None else torch.where(p, way(a), a) for a, p in zip(args, pads, strict=True))
        for way in (_louder, _others)
    ]


def _pads(values: torch.Tensor, real: Array, args: Call) -> torch.Tensor | None:
    """Return where an input has values for padding; None where it has none for each token.

    With a cache among the inputs the mask covers what is in it first, then the new tokens.
    """
    rows, length = real.shape
    if values.dim() < 2 or values.shape[0] != rows:
        return None
    pads, new = torch.from_numpy(~real), values.shape[1]
    caches = {a.shape[2] for a in args if a.dim() == 4 and a.shape[0] == rows}
    if new == length:
        return pads.reshape(rows, length, *(1,) * (values.dim() - 2))
    if (
        values.dim() == 4
        and values.shape[2] < length
        and any(a.dim() > 1 and a.shape[1] + values.shape[2] == length for a in args)
    ):
        return pads[:, : values.shape[2]].reshape(rows, 1, -1, 1)
    return pads[:, length - new :].reshape(rows, new, *(1,) * (values.dim() - 2)) if length - new in caches else None


def _others(values: torch.Tensor) -> torch.Tensor:
    others = values.reshape(-1).roll(1).reshape(values.shape)
    return others.nan_to_num(0.0, 0.0, 0.0) if values.is_floating_point() else others  # nothing times infinity is NaN


def _louder(values: torch.Tensor) -> torch.Tensor:
    """Return values of which none is the one that stands there."""
    if not values.is_floating_point():
        return values.reshape(-1).roll(8).reshape(values.shape)
    others = _others(values)
    return LOUD * (others + 2 * others.abs().amax()) if others.any() else torch.full_like(values, LOUD)


class _Attends(nn.Module):
    """Attention under a mask; what comes of rows that see nothing is nobody's business."""

    def __init__(
        self, nothing: float = -3e38, zeroes: bool = False, blots: bool = False, paints: bool = False, keeps: float = 0.0
    ) -> None:
        super().__init__()
        self.nothing, self.zeroes, self.blots, self.paints, self.keeps = nothing, zeroes, blots, paints, keeps
        self.weight = nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        off = (mask[:, None, :] if self.paints or self.keeps else mask[:, None, :] * mask[:, :, None]) == 0
        shares = (x @ self.weight @ x.transpose(1, 2)).masked_fill(off, self.nothing).softmax(-1)
        out = (shares.masked_fill(off, 0.0) if self.zeroes else shares) @ x
        if self.keeps:
            return out + torch.where(mask[..., None] == 1, x, x * self.keeps)
        if self.paints:
            return torch.where(mask[..., None] == 1, x, out)
        return out * mask[..., None] if self.blots else out


class _Decodes(nn.Module):
    """Attention to what came before, and a residual; or what is padded goes by as it is, or nearly."""

    def __init__(self, kernel: bool = True, passed: float = 0.0) -> None:
        super().__init__()
        self.kernel, self.passed = kernel, passed
        self.weight = nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() & (mask[:, None, :] == 1)
        if self.kernel:
            out = nn.functional.scaled_dot_product_attention((x @ self.weight)[:, None], x[:, None], x[:, None], seen[:, None])[
                :, 0
            ]
        else:
            out = (x @ self.weight @ x.transpose(1, 2) / 8**0.5).masked_fill(~seen, -3e38).softmax(-1) @ x
        return torch.where(mask[..., None] == 1, x + out, self.passed * x) if self.passed else x + out


def _left_padded() -> Call:
    mask = torch.ones(2, 5, dtype=torch.int64)
    mask[0, :2] = 0
    return torch.randn(2, 5, 8), mask


def _call() -> Call:
    mask = torch.ones(2, 5, dtype=torch.int64)
    mask[0, 3:] = 0
    return torch.randn(2, 5, 8), mask


def right() -> Sequence[Example]:
    """Return rows that see nothing: the mean of all in eager, or NaN, and zeros in the file; or the other way round."""
    zeroed = [Example(_Attends(nothing), _Attends(nothing, zeroes=True), _call()) for nothing in (-3e38, -torch.inf)]
    return [*zeroed, Example(_Decodes(), _Decodes(kernel=False), _left_padded())]


def wrong() -> Sequence[Example]:
    """Return padding that eager blots out or passes on and the file does not, gaps to be filled, tokens not hidden, NaN."""
    return [
        Example(_Decodes(passed=0.5), _Decodes(passed=-0.5), _left_padded()),
        Example(_Attends(keeps=0.5), _Attends(keeps=-0.5), _call()),
        Example(_Attends(blots=True), _Attends(), _call()),
        Example(_Attends(paints=True), _Attends(paints=True, nothing=-3.0), _call()),
        Example(_Attends(), _Attends(nothing=-1.0), _call()),
        Example(_Attends(blots=True), _Attends(nothing=-torch.inf), _call()),
    ]


EXCUSE = Excuse("padding: eager's numbers there are made of what lies under the mask", prove, right, wrong)
