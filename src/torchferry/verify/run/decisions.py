"""What eager decides by: comparisons, clips, picks and indices, with their numbers, the inputs they hang on, and the sides taken.

Watched where Python calls torch, above autograd, so that a search can follow the gradient of what is compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from torchferry import eager
from torchferry.whose_code import may_be_a_models

Kind = Literal["compare", "clip", "pick", "index", "digits", "buckets", "nan", "count", "cast", "condition", "round", "label"]


class CallSite(NamedTuple):
    """Where Python calls an operator: the line, and the instruction in it, since a line may hold several comparisons."""

    file: str
    line: int
    instruction: int
    op: str


class Key(NamedTuple):
    """What tells one decision from another: its place, and which of the operator's numbers it is about."""

    place: CallSite
    number: int = 0

    @property
    def words(self) -> str:
        """The operator and its line, in words."""
        return f"{self.place.op} in line {self.place.line}" if self.place.line else self.place.op


_KINDS: dict[Kind, tuple[str, ...]] = {
    "compare": ("gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "greater_equal", "less_equal", "not_equal", "isclose"),
    "clip": (
        "clamp", "clip", "clamp_min", "clamp_max", "minimum", "maximum", "fmin", "fmax", "hardtanh", "relu6", "threshold",
        "hardshrink", "softshrink", "softplus", "huber_loss", "smooth_l1_loss",
    ),
    "label": ("cross_entropy", "nll_loss"),
    "pick": ("argmax", "argmin", "topk", "max", "min", "sort", "argsort"),
    "index": (
        "getitem", "embedding", "index_select", "gather", "take", "take_along_dim", "one_hot", "scatter", "embedding_bag",
        "index_add", "scatter_add", "index_copy", "setitem",
    ),
    "digits": (
        "remainder", "fmod", "mod", "rmod", "floor_divide", "floordiv", "bitwise_and", "and", "bitwise_xor", "xor",
        "bitwise_right_shift", "rshift", "bitwise_left_shift", "lshift",
    ),
    "buckets": ("bucketize", "searchsorted"),
    "nan": ("isnan", "isfinite", "isinf", "nan_to_num", "nanmean", "nansum", "nanmedian", "nanquantile", "isneginf", "isposinf"),
    "count": ("item", "tolist", "__int__", "__index__", "repeat_interleave"),
    "round": ("round", "floor", "ceil", "trunc"),
    "cast": ("to", "type", "type_as", "half", "bfloat16", "char", "byte", "short"),
    "condition": (
        "where", "masked_fill", "masked_select", "logical_and", "logical_or", "logical_xor", "or", "bitwise_or", "any", "all",
        "__bool__",
    ),
}  # fmt: skip
_CHOOSING = ("where", "masked_fill", "masked_select", "__bool__")  # by a condition that they are given
_JOINING = ("and", "bitwise_and", "xor", "bitwise_xor")  # of truths a condition, of whole numbers their digits
# the first whole number that a dtype does not hold, and where it ends: what goes through it must have been as large
NARROW: Mapping[str, tuple[float, ...]] = {
    "int8": (128.0,), "uint8": (256.0,), "int16": (32768.0,), "uint16": (65536.0,), "bfloat16": (257.0,),
    "float16": (2049.0, 65520.0),
}  # fmt: skip
LOOKING = _KINDS["nan"]  # ops that ask whether numbers are finite, or leave out those that are not
_KIND_OF: dict[str, Kind] = {name: kind for kind, names in _KINDS.items() for name in names}
_IGNORING = {"cross_entropy": -100, "nll_loss": -100}  # ops that leave out a label, unless told of another this one
_FEW = 16  # numbers that are kept of one place
_ENDS, _EDGES = 3, 8  # numbers of a constant that are looked at; the same, where it is edges of buckets
_LOOKED_AT = 2**18  # of what is compared
_CHOICES = 64  # among which a pick is told apart


@dataclass(slots=True)
class Decision:
    """One place where eager goes one way or another, with all ways that it went."""

    kind: Kind
    key: Key
    inputs: frozenset[int]  # those that it hangs on
    whole: bool  # it is about whole numbers
    numbers: tuple[float, ...] = ()  # what values are held against
    length: int = 0  # of what is indexed, or how many there are to pick from
    last: int = -1  # the largest index that was seen
    sides: set[str] = field(default_factory=set)  # "below", "at", "above"; "true", "false"; for a pick, which one
    margin: torch.Tensor | None = None  # how far values lie above the number, while they are kept: for its gradient


@dataclass(slots=True)
class WatchedCall:
    """One call of eager: its decisions by place, the places it came by, and what it gave."""

    decisions: dict[Key, Decision] = field(default_factory=dict)
    places: set[tuple[str, int, str]] = field(default_factory=set)
    outputs: tuple[torch.Tensor, ...] = ()


def watch(module: torch.nn.Module, args: Sequence[torch.Tensor], *, grad: bool = False, margins: bool = False) -> WatchedCall:
    """Return what eager decides by in one call, raise what it raises.

    With `margins` those are kept; with `grad` they also know how they came of `args`.
    """

    def run() -> WatchedCall:
        watched = WatchedCall()
        mode = _Watch(watched, args, grad, margins)
        with eager.untouched_process(), eager.plainly(), torch.set_grad_enabled(grad), mode:
            eager.seed_all(0)
            watched.outputs = tuple(o.detach() for o in module(*mode.given))
        return watched

    return eager.protected(module, run)


class _Watch(TorchFunctionMode):
    def __init__(self, watched: WatchedCall, args: Sequence[torch.Tensor], grad: bool, margins: bool) -> None:
        super().__init__()
        self.watched, self.grad, self.margins = watched, grad, margins
        self.given = [a if grad and a.requires_grad else a.detach().clone() for a in args]
        self.given = [a * 1 if a.requires_grad else a for a in self.given]  # no leaf: the model may write into it
        self.owners: Any = WeakIdKeyDictionary()  # tensor -> the inputs that went into it
        for i, a in enumerate(self.given):
            self.owners[a] = frozenset({i})

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        called = str(getattr(func, "__name__", ""))
        name = called if called in _KIND_OF else called.strip("_")
        taken = list(_tensors((args, kwargs)))
        inputs = frozenset[int]().union(*(self.owners.get(t, frozenset()) for t in taken))
        if not inputs:
            return out
        for result in _tensors(out):
            self.owners[result] = inputs | self.owners.get(result, frozenset())
        if name == "setitem" or (called.endswith("_") and not called.endswith("__")):  # written in place
            self.owners[args[0]] = inputs | self.owners.get(args[0], frozenset())
        if name in ("get", "set", "size", "dim", "stride", "numel", "shape"):
            return out
        place = _place(sys._getframe(1), name)
        self.watched.places.add((place.file, place.line, name))
        if (kind := _KIND_OF.get(name)) is not None:
            try:
                self._decide(kind, place, args, kwargs or {}, inputs, out)
            except Exception:  # an overload that we have not thought of decides nothing that we know of
                return out
        return out

    def _decide(self, kind: Kind, at: CallSite, args: Any, kwargs: Any, inputs: frozenset[int], out: Any) -> None:
        first = next((a for a in args if isinstance(a, torch.Tensor)), None)
        whole = first is not None and not first.is_floating_point()
        name = at.op
        if kind == "condition" or (name in _JOINING and out.dtype == torch.bool):
            given = [a for a in args if isinstance(a, torch.Tensor) and a.dtype == torch.bool]
            self._condition(at, given[0] if given and name in _CHOOSING else out, inputs)
        elif kind == "cast":
            numbers = NARROW.get(str(out.dtype).removeprefix("torch."), ())
            if numbers and first is not None and first.dtype not in (out.dtype, torch.bool):
                self._add(Decision(kind, Key(at), inputs, whole, numbers))
        elif kind == "round" and first is not None and first.is_floating_point():
            self._round(at, first, inputs)
        elif kind == "label":
            labels = args[1] if len(args) > 1 else kwargs["target"]
            if not labels.is_floating_point():  # shares of each class leave nothing out
                left_out = kwargs.get("ignore_index", _IGNORING[name])
                self._add(Decision("label", Key(at), self.owners.get(labels, frozenset()), True, (float(left_out),)))
        elif kind in ("nan", "count"):
            self._add(Decision(kind, Key(at), self._of(args, kwargs), whole))
        elif kind == "index":
            for place, (index, length) in enumerate(_indices(name, args, kwargs)):
                last = int(index.max()) if index.numel() else -1
                self._add(Decision(kind, Key(at, place), self.owners.get(index, frozenset()), True, length=length, last=last))
        elif kind == "pick" and not (len(args) > 1 and isinstance(args[1], torch.Tensor)):
            self._pick(at, args, kwargs, inputs)
        elif kind in ("compare", "clip", "digits", "buckets", "pick"):
            self._hold_against(kind, at, args, kwargs)

    def _hold_against(self, kind: Kind, at: CallSite, args: Any, kwargs: Any) -> None:
        given = [*args, *kwargs.values()]
        if at.op in ("eq", "ne") and len(args) == 2 and args[0] is args[1]:  # only NaN is not equal to itself
            self._add(Decision("nan", Key(at), self._of(args, {}), False))
            return
        values = [g for g in given if isinstance(g, torch.Tensor) and self.owners.get(g)]
        for place, other in enumerate(g for g in given if g is not values[0]):
            if other is None or isinstance(other, bool | str):
                continue
            free = isinstance(other, torch.Tensor) and self.owners.get(other)
            numbers = () if free else _numbers(other, _EDGES if kind == "buckets" else _ENDS)
            inputs = self._of([values[0], other], {})
            whole = not values[0].is_floating_point()
            decision = Decision("compare" if kind == "pick" else kind, Key(at, place), inputs, whole, numbers)
            if kind in ("compare", "clip", "pick") and not values[0].is_complex():
                margin = values[0].reshape(-1)[:_LOOKED_AT] - other if not isinstance(other, torch.Tensor) else values[0] - other
                self._take_sides(decision, margin)
            self._add(decision)

    def _take_sides(self, decision: Decision, margin: torch.Tensor) -> None:
        flat = margin.detach().reshape(-1)[:_LOOKED_AT]
        seen = {"below": flat < 0, "at": flat == 0, "above": flat > 0}
        decision.sides |= {side for side, where in seen.items() if bool(where.any())}
        kept = self.margins or (self.grad and margin.requires_grad)
        decision.margin = margin if kept and margin.numel() else None

    def _round(self, at: CallSite, values: torch.Tensor, inputs: frozenset[int]) -> None:
        """Keep how far numbers lie from where they are rounded another way: halves for `round`, whole numbers for its like."""
        decision = Decision("round", Key(at), inputs, False)
        shifted = values + 0.5 if at.op == "round" else values
        self._take_sides(decision, shifted - shifted.round())
        self._add(decision)

    def _condition(self, at: CallSite, truth: Any, inputs: frozenset[int]) -> None:
        if not isinstance(truth, torch.Tensor) or truth.dtype != torch.bool or not truth.numel():
            return
        decision = Decision("condition", Key(at), inputs, True)
        decision.sides = {side for side, taken in (("true", truth.any()), ("false", (~truth).any())) if bool(taken)}
        self._add(decision)

    def _pick(self, at: CallSite, args: Any, kwargs: Any, inputs: frozenset[int]) -> None:
        values = args[0]
        dim = _dim(at.op, args, kwargs)
        if dim is None or not values.dim() or not 1 < values.shape[dim] <= _CHOICES or not values.is_floating_point():
            return
        keys = -values if at.op in ("argmin", "min") else values
        rows = keys.movedim(dim, -1).reshape(-1, values.shape[dim])
        decision = Decision("pick", Key(at), inputs, False, length=values.shape[dim])
        decision.sides = {str(int(k)) for k in rows.detach().argmax(-1).unique()}
        decision.margin = rows if self.grad and rows.requires_grad and rows.numel() else None
        self._add(decision)

    def _of(self, args: Any, kwargs: Any) -> frozenset[int]:
        return frozenset[int]().union(*(self.owners.get(t, frozenset()) for t in _tensors((args, kwargs))))

    def _add(self, decision: Decision) -> None:
        if not decision.inputs:
            return
        known = self.watched.decisions.setdefault(decision.key, decision)
        if known is not decision:  # a loop comes by again
            known.sides |= decision.sides
            known.inputs |= decision.inputs
            known.numbers = tuple(dict.fromkeys((*known.numbers, *decision.numbers)))[:_FEW]
            known.length, known.last = max(known.length, decision.length), max(known.last, decision.last)
            known.margin = decision.margin if decision.margin is not None else known.margin


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _numbers(other: Any, most: int) -> tuple[float, ...]:
    """Return the finite numbers of a constant: all of a few, both ends and some between of more."""
    if isinstance(other, int | float):
        return (float(other),) if abs(other) < 1e30 else ()
    if not isinstance(other, torch.Tensor) or not other.numel() or other.is_complex() or other.dtype == torch.bool:
        return ()
    flat = other.detach().reshape(-1).to(torch.float64)
    picked = flat if flat.numel() <= most else flat[torch.linspace(0, flat.numel() - 1, most).round().long()]
    return tuple(dict.fromkeys(float(v) for v in picked if abs(float(v)) < 1e30))


def _indices(name: str, args: Any, kwargs: Any) -> Iterator[tuple[torch.Tensor, int]]:
    """Yield each tensor of indices with the length of the axis that it points into."""
    if name == "one_hot":
        classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
        if classes > 0:
            yield args[0], classes
    elif name in ("embedding", "embedding_bag"):
        yield args[0], args[1].shape[0]
    elif name in ("getitem", "setitem"):
        yield from _subscript(args[0], args[1])
    elif name == "take":
        yield args[1], args[0].numel()
    elif name == "take_along_dim":
        dim = args[2] if len(args) > 2 else kwargs.get("dim")
        yield args[1], args[0].numel() if dim is None else args[0].shape[dim]
    else:
        dim = args[1] if len(args) > 1 else kwargs["dim"]
        yield args[2] if len(args) > 2 else kwargs["index"], args[0].shape[dim]


def _subscript(table: torch.Tensor, subscript: Any) -> Iterator[tuple[torch.Tensor, int]]:
    parts = subscript if isinstance(subscript, tuple) else (subscript,)
    used = sum(
        p.dim() if isinstance(p, torch.Tensor) and p.dtype == torch.bool else 1
        for p in parts
        if p is not None and p is not Ellipsis
    )
    axis = 0
    for part in parts:
        if part is None:
            continue
        if part is Ellipsis:
            axis += table.dim() - used
        elif isinstance(part, torch.Tensor) and part.dtype == torch.bool:
            axis += part.dim()
        else:
            if isinstance(part, torch.Tensor) and not part.is_floating_point():
                yield part, table.shape[axis]
            axis += 1


def _dim(name: str, args: Any, kwargs: Any) -> int | None:
    """Return along which axis an operator picks, or None where it picks one of all."""
    place = 2 if name == "topk" else 1
    dim = args[place] if len(args) > place else kwargs.get("dim", -1 if name in ("topk", "sort", "argsort") else None)
    return dim if isinstance(dim, int) else None


def _place(frame: Any, op: str) -> CallSite:
    """Return where an operator is called, in the innermost line that is neither torch's nor ours."""
    while frame is not None:
        file = frame.f_code.co_filename
        if may_be_a_models(file):
            return CallSite(file, frame.f_lineno, frame.f_lasti, op)
        frame = frame.f_back
    return CallSite("", 0, 0, op)
