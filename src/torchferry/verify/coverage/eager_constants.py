"""What eager makes of its weights alone: every value that no input went into, told while one call runs (a taint analysis).

A file may hold such a value in the place of the weights behind it: a normalised weight, a table of sines, a mask.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.foreign.torch_modules import tables_of
from torchferry.foreign.torch_operators import is_mutable, schema_of
from torchferry.foreign.torch_tensors import storage_identity
from torchferry.foreign.torch_trees import tree_leaves
from torchferry.verify.run.eager_trace import op_name

INPUT = ""  # stands among the origins of a value that an input, or a random number, went into
NOTHING: frozenset[str] = frozenset()
Listener = Callable[[int, str, torch.Tensor, frozenset[str]], None]  # place on the trace, op, value, its origin
# ops whose result has their argument's shape or type and nothing of its values
SHAPES = (
    "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided",
)  # fmt: skip
# ops that make a Python number, or a size, of a tensor's values: what follows is fixed when a file is made
FIXING = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "_unique2", "unique_dim")


@dataclass(slots=True)
class Seen:
    """What one call told of the model's own tensors."""

    alive: frozenset[str] = NOTHING  # those that went into some output
    written: set[str] = field(default_factory=set)  # changed in place: what they hold between calls is nobody's business
    deciding: set[str] = field(default_factory=set)  # those whose values decide sizes, indices or branches
    moves: tuple[bool, ...] = ()  # for each output, whether any input's values went into it
    ops: list[str] = field(default_factory=list)
    lifted: dict[str, torch.Tensor] = field(default_factory=dict)  # tensors of a closure, a class or a literal, by made-up names
    largest: float = 0.0  # number in any output
    complete: bool = True  # whether the call could be watched to its end


def held(module: torch.nn.Module, prefix: str = "") -> dict[str, torch.Tensor]:
    """Return the model's tensors by their names: parameters, buffers, and others that its parts have as attributes."""
    found: dict[str, torch.Tensor] = {}
    for path, part in module.named_modules():
        attributes = {n: v for n, v in vars(part).items() if isinstance(v, torch.Tensor)}
        parameters, buffers = tables_of(part)
        for name, tensor in {**attributes, **parameters, **buffers}.items():
            if tensor is not None and tensor.layout is torch.strided and not tensor.is_meta:
                full = f"{path}.{name}" if path else name
                found.setdefault(full.removeprefix(prefix), tensor)
    return found


def watch(module: torch.nn.Module, args: tuple[Any, ...], prefix: str, listen: Listener | None = None) -> Seen:
    """Return what a call showed of the model's tensors; `listen` hears of every value that no input went into."""
    seen = Seen()
    watcher = _Watcher(seen, held(module, prefix), args, listen or (lambda *_: None))
    try:
        with watcher:
            outputs = eager.call(module, args)
        origins = [watcher.origin([o]) for o in outputs]
        seen.moves, seen.alive = tuple(INPUT in o for o in origins), NOTHING.union(*origins) - {INPUT}
        sizes = [float(o.abs().max()) for o in outputs if o.is_floating_point() and o.numel()]
        seen.largest = max((math.inf if math.isnan(s) else s for s in sizes), default=0.0)
    except Exception:  # torch.cond and its like compile themselves and do not bear being watched
        seen.complete = False
        with contextlib.suppress(Exception):
            torch.compiler.reset()
    return seen


class _Watcher(Watching):
    def __init__(self, seen: Seen, named: dict[str, torch.Tensor], args: Iterable[Any], listen: Listener) -> None:
        super().__init__()
        self.seen, self.listen = seen, listen
        # a weak reference keeps a storage's number from being given to another one
        self.known: dict[int, tuple[StorageWeakRef, frozenset[str]]] = {}
        self.names: dict[int, set[str]] = {}
        for name, tensor in named.items():
            self._mark(tensor, self.origin([tensor]) | {name})
            self.names.setdefault(_number(tensor), set()).add(name)
        for tensor in args:
            self._mark(tensor, frozenset({INPUT}))

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = list(_tensors((args, kwargs)))
        name = op_name(func)
        for tensor in given:
            if (number := _number(tensor)) and number not in self.known:  # a tensor of the closure, or a literal
                lifted = f"constant {len(self.seen.lifted) + 1}" if tensor.numel() > 1 else ""
                self._mark(tensor, frozenset({lifted}) if lifted else NOTHING)
                self.seen.lifted |= {lifted: tensor.detach()} if lifted else {}
                self.listen(-1, "", tensor, NOTHING)
        origin = NOTHING if name in SHAPES else self.origin(given)
        if torch.Tag.nondeterministic_seeded in func.tags:
            origin |= {INPUT}
        out = func(*args, **(kwargs or {}))
        self.seen.ops.append(str(func))
        results = list(_tensors(out))
        if is_mutable(func):
            for argument, tensor in zip(schema_of(func).arguments, args, strict=False):
                if argument.alias_info is not None and argument.alias_info.is_write and isinstance(tensor, torch.Tensor):
                    self.seen.written.update(self.names.get(_number(tensor), ()))
                    self._mark(tensor, origin)
        for result in results:
            if _number(result) not in self.names:  # a view of a weight is that weight
                self._mark(result, origin)
        if INPUT not in origin:
            place = len(self.seen.ops) - 1
            whole = any(not r.is_floating_point() and not r.is_complex() for r in results)
            if name.rstrip("_") in FIXING or whole:
                self.seen.deciding.update(origin)
            for n, result in enumerate(results):
                self.listen(place * 16 + n, str(func), result, origin)
        return out

    def origin(self, tensors: Iterable[torch.Tensor]) -> frozenset[str]:
        """Return the weights that went into any of these, with INPUT if an input did."""
        return NOTHING.union(*(self.known[n][1] for t in tensors if (n := _number(t)) in self.known))

    def _mark(self, tensor: Any, origin: frozenset[str]) -> None:
        if isinstance(tensor, torch.Tensor) and (number := _number(tensor)):
            self.known[number] = (StorageWeakRef(tensor.untyped_storage()), origin)


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    for leaf in tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and not leaf.is_nested:
            yield leaf


def _number(tensor: torch.Tensor) -> int:
    """Return what tells a tensor's memory from any other, 0 where it has none of its own."""
    if tensor.layout is not torch.strided or tensor.is_meta:
        return 0
    return storage_identity(tensor)
