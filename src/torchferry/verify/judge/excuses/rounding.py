"""Whether rounding alone explains a difference: the file is held against a float64 run, and against eager nudged.

No two right kernels give the same last bits. Where a model makes much of them (a difference of nearly equal sums, a
threshold, a rounded number), what is far off may be as right as eager is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from torchferry import eager
from torchferry.verify.arrays import Array, arrays, is_float, wide
from torchferry.verify.judge.excuses.rounding_noise import Noisy, nudge, shaken

NUDGES = 6  # perturbed runs that show how much rounding alone can move an output
FACTOR = 2.0  # the file may be this much further from float64 than eager is
STEP_NUDGE = 8.0  # units in the last place: about what a few sums in another order amount to
STEPS_SHARE = 4.0  # the file may take this many times more steps than eager nudged
FLIPS = 24  # perturbed runs in which a choice may turn out to hang on rounding
HANDFUL = 2  # numbers that may stay unexplained by bad luck, whatever their share
HOPELESS = 1e3  # times what a nudge does: no float64 run would clear that
EDGE = float(np.finfo(np.float32).max) / 4  # a true value beyond it may be infinite on one side and not on the other
SPREAD = 8.0  # and this much more than what nudging the inputs by one unit in the last place does
Nudged = Callable[..., list[Array]]  # seed, and units in the last place -> the outputs with everything moved by so much


def in_float64(module: torch.nn.Module, args: tuple[Any, ...]) -> list[Array] | None:
    """Return the outputs computed in float64, or None where the model does not run in it."""
    try:
        double = eager.fresh(module)
        if double is module:  # it could not be copied, and must not be converted
            return None
        if any(p is q for p, q in zip(double.parameters(), module.parameters(), strict=False)):
            double = copy.deepcopy(double)  # a large model shares its weights with its copies
        double = double.double()
        widened = tuple(a.double() if a.is_floating_point() else a for a in args)
        return [wide(o) if is_float(o) else o for o in arrays(eager.call(double, widened))]
    except Exception:  # a model that insists on float32 somewhere cannot be asked
        return None


def _nudged(
    module: torch.nn.Module, args: tuple[Any, ...], seed: int, size: float = 1.0, *, settled: bool = False
) -> list[Array]:
    """Return the outputs with inputs, weights, buffers and roundings nudged; of a large model's weights only the vectors.

    Inputs and buffers of a `settled` model are left alone: their digits are the same on both sides, and decide its steps.
    """
    generator = torch.Generator().manual_seed(seed)
    twin = eager.fresh(module)
    whole = eager.weight_bytes(module) <= eager.WHOLE_COPY_BYTES
    with torch.no_grad():
        for part in twin.modules() if twin is not module else ():
            for name, weight in part.named_parameters(recurse=False):
                if whole:  # in place: recurrent modules hold their weights twice
                    weight.copy_(nudge(weight, generator, size))
                elif weight.dim() < 2:  # shared with the user's model
                    part._parameters[name] = torch.nn.Parameter(nudge(weight, generator, size), requires_grad=False)
            for name, buffer in () if settled else part.named_buffers(recurse=False):
                part._buffers[name] = nudge(buffer, generator, size)
    moved = args if settled else tuple(shaken(nudge(a, generator, size), generator) for a in args)
    for noisy in (Noisy(generator), nullcontext()):
        try:
            with noisy:
                made = eager.call(twin, moved)
            return arrays(made if settled else [shaken(o, generator) for o in made])
        except Exception:  # an input at the edge of what the model takes; torch.cond and its like do not bear being watched
            continue
    return []


def ill_conditioned(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    want: list[Array],
    got: list[Array],
    *,
    exact: bool,
    rounds: bool,
    settled: bool = False,
) -> bool:
    """Return whether rounding alone explains every difference: the file is as near to the truth as eager is.

    `exact` says that every op of the model is exactly rounded, so that no two right answers exist; `rounds`, that some op
    turns a difference in the last place into a whole step; `settled`, that ops which could are all given exact numbers.
    """
    if any(w.shape != g.shape or w.dtype != g.dtype for w, g in zip(want, got, strict=True)):
        return False
    nudged = partial(_nudged, module, args, settled=settled)
    if not rounds and _hopeless(nudged, want, got):
        return False
    truth = in_float64(module, args)
    if not _choices_explained(nudged, want, got, truth, exact=exact):
        return False
    if rounds and not exact and _steps_alike(nudged, want, got):
        return True
    floats = [n for n, w in enumerate(want) if is_float(w)]
    pairs = [(wide(want[n]), wide(got[n]), None if truth is None else truth[n]) for n in floats]
    if exact:
        return all(_explained(*pair, None).all() for pair in pairs)
    moved = [np.zeros(want[n].shape) for n in floats]
    for seed in range(FLIPS):
        other = nudged(seed)
        if len(other) == len(want):
            moved = [_further(m, w, other[n]) for m, n, (w, _, _) in zip(moved, floats, pairs, strict=True)]
        left = [~_explained(*pair, m) for pair, m in zip(pairs, moved, strict=True)]
        if not any(places.any() for places in left):
            return True
        if seed + 1 >= NUDGES and not _few(left, pairs):
            return False
    return False


def _further(moved: Array, want: Array, nudged: Array) -> Array:
    """Return how far each number has moved so far, with one more nudged run."""
    if nudged.shape != want.shape:
        return moved
    with np.errstate(invalid="ignore"):
        further = np.fmax(moved, np.abs(wide(nudged) - want))
    return np.where(np.isnan(want) & ~np.isnan(wide(nudged)), np.inf, further)


def _few(left: list[Array], pairs: list[tuple[Array, Array, Array | None]]) -> bool:
    """Return whether most of what differs is explained by now, so that the rest may be a matter of luck.

    Behind a clamp or a root a nudge shows in one direction alone, and so in half of the runs.
    """
    with np.errstate(invalid="ignore"):
        unlike = sum(int((np.abs(w - g) > _slack(w)).sum()) for w, g, _ in pairs)
    return sum(int(places.sum()) for places in left) <= max(HANDFUL, unlike // 2)


def _choices_explained(nudged: Nudged, want: list[Array], got: list[Array], truth: list[Array] | None, *, exact: bool) -> bool:
    """Return whether each whole number that differs is float64's own, or flips in eager when rounding errors are added.

    A choice (the largest of several, a rounded number) has no small differences, so each place is looked at by itself.
    """
    unlike = {n: np.asarray(w != g) for n, (w, g) in enumerate(zip(want, got, strict=True)) if not is_float(w)}
    for n, places in unlike.items():
        if truth is not None and truth[n].shape == places.shape:
            unlike[n] = places & (truth[n] != got[n])
    for seed in range(0 if exact else FLIPS):
        if not any(places.any() for places in unlike.values()):
            break
        other = nudged(seed, STEP_NUDGE)
        for n, places in unlike.items() if len(other) == len(want) else ():
            if other[n].shape == places.shape:
                unlike[n] = places & (other[n] == want[n])
    return not any(places.any() for places in unlike.values())


def _hopeless(nudged: Nudged, want: list[Array], got: list[Array]) -> bool:
    """Return whether a difference is so far beyond what one nudge does that nothing else need be asked."""
    for w, g, n in zip(want, got, nudged(0), strict=False):
        if not is_float(w) or w.shape != g.shape or w.shape != n.shape or not w.size:
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            far, own = np.abs(wide(g) - wide(w)), np.abs(wide(n) - wide(w))
            slack = 1e-5 + 1e-5 * np.abs(wide(w))
            if bool(np.nan_to_num(far).max() > HOPELESS * (np.nan_to_num(own).max() + np.nan_to_num(slack).max())):
                return True
    return False


def _steps_alike(nudged: Nudged, want: list[Array], got: list[Array]) -> bool:
    """Return whether eager itself, nudged, takes as many steps of the same height as the file does, in every output of floats."""
    runs = [nudged(seed, STEP_NUDGE) for seed in range(NUDGES)]
    for n, (w, g) in enumerate(zip(want, got, strict=True)):
        if not is_float(w):
            continue
        height, share = _steps(w, g)
        own = [_steps(w, r[n]) for r in runs if n < len(r) and r[n].shape == w.shape]
        tall, wide_spread = max((h for h, _ in own), default=0.0), max((s for _, s in own), default=0.0)
        if not (height <= FACTOR * tall + 1e-5 and share <= STEPS_SHARE * wide_spread + 1 / max(1, 4 * w.size)):
            return False
    return True


def _steps(one: Array, two: Array) -> tuple[float, float]:
    """Return the largest difference, and the share of numbers that differ at all beyond rounding."""
    if not one.size:
        return 0.0, 0.0
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(wide(one) - wide(two)), nan=np.inf)
    return float(apart.max()), float((apart > 1e-5 + 1e-5 * np.nan_to_num(np.abs(wide(one)))).mean())


def _slack(want: Array) -> Array:
    """Return torch.testing's allowance for float32, number by number."""
    return 1e-5 + 1.3e-6 * np.nan_to_num(np.abs(want), nan=0.0, posinf=0.0, neginf=0.0)


def _explained(want: Array, got: Array, truth: Array | None, moved: Array | None) -> Array:
    """Return which numbers are as near to the truth as eager's, or no further off than nudging moves them.

    Where eager is NaN or infinite only until it is nudged, or where the truth is nothing divided by nothing and eager's
    number is made of its rounding errors, there is no right number, and no reason to ask the file for eager's.
    """
    singular = np.zeros(want.shape, bool) if moved is None else ~np.isfinite(want) & np.isinf(moved)
    if truth is not None and truth.shape == want.shape:
        singular |= np.isnan(truth) & ~np.isnan(want)
        singular |= np.abs(np.nan_to_num(truth, posinf=0.0, neginf=0.0)) > EDGE
    unlike = (np.isnan(want) != np.isnan(got)) | (np.isinf(want) != np.isinf(got))
    return np.where(unlike, singular, _explained_finite(want, got, truth, moved))


def _explained_finite(want: Array, got: Array, truth: Array | None, moved: Array | None) -> Array:
    """Return which numbers are explained, where both sides are finite or in the same way not."""
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.nan_to_num(np.abs(got - want), nan=0.0)
        slack = _slack(want)
        allowed = slack if moved is None else slack + SPREAD * np.nan_to_num(moved)
        if truth is None or truth.shape != want.shape:
            return np.asarray(far <= allowed)
        own = np.nan_to_num(np.abs(want - wide(truth)), nan=0.0)
        its = np.nan_to_num(np.abs(got - wide(truth)), nan=np.inf)
        nearer = its <= FACTOR * _worst_of_its_kind(own, wide(truth)) + slack
    return np.asarray(nearer | (far <= allowed))


def _worst_of_its_kind(errors: Array, truth: Array) -> Array:
    """Return, for each number, the largest error among those of about its size: one lucky number proves nothing.

    Errors of far larger numbers do not count, lest a huge one excuse all others.
    """
    with np.errstate(divide="ignore"):
        decades = np.clip(np.floor(np.log10(np.abs(np.nan_to_num(truth)) + 1e-30)), -8, 40).astype(int)
    worst = {d: float(errors[decades == d].max()) for d in np.unique(decades)}
    return np.vectorize(lambda d: max(worst.get(d + step, 0.0) for step in (-1, 0, 1)), otypes=[float])(decades)
