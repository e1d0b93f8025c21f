"""What kind of model this is, as far as judging it goes: learned or a plain function, exact, sorting, random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torchferry.verify.judge.excuses.tie_order import picks, sorts
from torchferry.verify.run.eager_trace import SORTING, Note

# ops whose result is the same number on every machine: exactly rounded, or no arithmetic at all
_EXACT = frozenset((
    "add", "sub", "mul", "div", "neg", "abs", "floor", "ceil", "round", "trunc", "fmod", "remainder", "floor_divide",
    "sign", "relu", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "max", "min", "amax", "amin", "eq", "ne",
    "lt", "le", "gt", "ge", "where", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_not", "bitwise_xor", "__rshift__", "__lshift__", "bitwise_right_shift", "bitwise_left_shift", "_to_copy",
    "to", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t", "slice", "select", "index",
    "gather", "scatter", "index_select", "cat", "stack", "split", "chunk", "unbind", "unsqueeze", "squeeze", "clone",
    "copy_", "detach", "arange", "full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "empty", "fill_",
    "masked_fill", "sort", "topk", "argmax", "argmin", "argsort", "embedding", "flip", "roll", "repeat",
    "constant_pad_nd", "lift_fresh", "lift_fresh_copy", "alias", "as_strided", "scalar_tensor", "rsub", "sqrt",
    "reciprocal", "isnan", "isinf", "nonzero", "tril", "triu", "bucketize", "searchsorted", "add_", "sub_", "mul_",
    "div_", "_local_scalar_dense",
))  # fmt: skip
_VIEWS = ("view", "detach", "clone", "alias", "_to_copy", "squeeze", "unsqueeze", "select", "slice", "permute", "t")
_STEPS = (
    "round", "quant", "floor", "ceil", "trunc", "bucketize", "searchsorted", "argmax", "argmin", "topk", "sort",
    "sign", "int8",
)  # fmt: skip
_WEIGHING = ("attention", "softmax", "transformer")


@dataclass(frozen=True, slots=True)
class Nature:
    """What judging needs to know of a model."""

    learned: bool  # it has weights; without any it is a plain function whose behaviour at NaN and ties is its meaning
    exact: bool  # every op is exactly rounded: there is one right answer
    rounds: bool  # some op turns a rounding error into a whole step: rounding, quantising, picking the largest
    settled: bool  # such ops are there, and nothing is rounded before them: which step it is, the inputs' own digits decide
    sorting: Note | None  # the first op that picks among equals
    sorts_last: bool  # and that op's answer is the model's
    attends: bool  # it has an attention kernel, which makes something of infinities in its own way
    weighs: bool  # it has attention of any making, in which tokens without one to look at may get any numbers
    maximises: bool  # it takes maxima or minima, which pass NaN on in torch and pass over it in onnxruntime
    complex: bool  # complex numbers become pairs of reals, whose squares overflow where torch's own magnitude does not
    random: tuple[bool, ...]  # which outputs are drawn anew at every call


def nature(module: torch.nn.Module, notes: Sequence[Note], random: tuple[bool, ...]) -> Nature:
    """Return what kind of model this is, from its parameters and from what eager was seen to do."""
    learned = any(p.numel() > 0 for p in module.parameters())
    steps = [place for place, n in enumerate(notes) if picks(n) or any(word in n.op for word in _STEPS)]
    inexact = next((place for place, n in enumerate(notes) if n.location.op not in _EXACT), len(notes))
    settled = bool(steps) and steps[-1] < inexact < len(notes)
    rounds = bool(steps) and not settled
    maximises = any(takes_maximum(n) for n in notes)
    attends = any("attention" in n.op for n in notes)
    weighs = any(word in n.op for n in notes for word in _WEIGHING)
    pairs = any("complex" in d for n in notes for d in n.dtypes)
    sorting, exact = sorts(notes), inexact == len(notes)
    return Nature(learned, exact, rounds, settled, sorting, _sorts_last(notes), attends, weighs, maximises, pairs, random)


def takes_maximum(note: Note) -> bool:
    """Return whether an op gives the largest or smallest of several numbers."""
    return note.location.op in ("amax", "amin", "max", "min") or "max_pool" in note.op


def _sorts_last(notes: Sequence[Note]) -> bool:
    """Return whether nothing but a change of view or dtype follows the last op that sorts."""
    after = [n.location.op for n in notes]
    while after and after[-1] in _VIEWS:
        after.pop()
    return bool(after) and after[-1] in SORTING
