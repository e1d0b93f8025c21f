"""Whether outputs differ only at padding: there is garbage, which no two right models need agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torchferry.records import Fault, TensorSpec, Tolerance
from torchferry.verify.arrays import Array, array, is_float, wide
from torchferry.verify.judge.compare import wrong
from torchferry.verify.judge.excuses.token_masks import empty_rows, speaks_of, token_mask, under_padding
from torchferry.verify.run.both_sides import Call, Sides
from torchferry.verify.trials.padding_garbage import per_token, tokens, with_garbage


def only_padding(
    sides: Sides, allowed: Tolerance, args: Call, want: Sequence[Array], got: Sequence[Array], *, weighs: bool
) -> bool:
    """Return whether the sides differ only where tokens are not real, and eager's numbers there are garbage.

    A mask that is merely called so may say where numbers are to be made up, which are then the answer: it counts as one of
    padding where the model `weighs` tokens by each other.
    """
    bound = sides.bound
    real = tokens(bound, args)
    if real is None or real.all() or not (weighs or _named_for_padding(sides)):
        return False
    other = with_garbage(bound, args, real, tuple(a.reshape(-1).roll(1).reshape(a.shape) for a in args))
    garbled = any(o is not a for o, a in zip(other, args, strict=True))
    for n, (w, g) in enumerate(zip(want, got, strict=True)):
        bad = wrong(w, g, allowed)
        if not bad.any():
            continue
        pads = _tokens_of_output(sides, args, real, n, w)
        if pads is not None:
            meant = bad & (w != 0) & is_float(w) & garbled  # zeros are how padding is blotted out
        else:
            pads, meant = empty_rows(real, w), bad
        if pads is None or (bad & ~pads).any() or _defined(sides, allowed, other, n, w, meant):
            return False
    return True


def _named_for_padding(sides: Sides) -> bool:
    mask = _mask(sides)
    return mask is not None and any(word in mask.name.lower() for word in ("pad", "attention", "attn"))


def _mask(sides: Sides) -> TensorSpec | None:
    """Return the input that is a token mask, or None."""
    bound = sides.bound
    examples = {s.name: array(a) for s, a in zip(bound.signature.inputs, bound.args, strict=True)}
    return token_mask(bound.signature, examples, bound.roles)


def _tokens_of_output(sides: Sides, args: Call, real: Array, n: int, want: Array) -> Array | None:
    """Return where an output stands for padding, token by token; None where it may stand for tokens that no mask speaks of."""
    bound, mask = sides.bound, _mask(sides)
    if mask is None:
        return None
    at, files = sides.order[n], sides.file.outputs
    declared = files[at].shape if at < len(files) else ()
    names = [s.name for s in bound.signature.inputs]
    others = [name for name in per_token(bound, args, real) if not speaks_of(mask.name, name, names)]
    if others and not (isinstance(mask.shape[1], str) and mask.shape[1] in declared):
        return None
    return under_padding(real, want, mask.shape[1], declared, [tuple(a.shape) for a in args])


def _defined(sides: Sides, allowed: Tolerance, garbled: Call, n: int, want: Array, bad: Array) -> bool:
    """Return whether eager gives numbers for padding that do not hang on what lies under the mask: no garbage, then.

    Attention to nothing is zero in torch, so that a sum over a row without a token is part of what the model means; and a
    mask over what is attended to says nothing of the tokens that attend.
    """
    if not bad.any():
        return False
    other = sides.eager(garbled)
    if isinstance(other, Fault) or other[n].shape != want.shape or (is_float(want) and not np.isfinite(wide(want[bad])).all()):
        return False
    return not wrong(want, other[n], allowed)[bad].any()
