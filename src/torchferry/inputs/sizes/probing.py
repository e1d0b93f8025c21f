"""Trying the eager model at other sizes: whether it runs, and what it says when it does not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from torchferry import eager
from torchferry.eager.apart import Apart, Died, can_fork
from torchferry.foreign.python_warnings import no_warnings
from torchferry.foreign.torch_messages import may_be_past_an_end
from torchferry.foreign.torch_tracing import FakeTensorMode
from torchferry.inputs.values.lookups import Lookup, Lookups
from torchferry.inputs.values.roles import InputRole
from torchferry.inputs.values.vary import resized

NOT_TRIED = "not tried"
LONGEST = 60.0  # seconds that a try of one set of sizes may take in a fork, which may also hang
FIRST = 5.0  # and the first, of the example, beside twenty times what it takes here
Axis = tuple[int, int]  # (input, axis)
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the model said, and which of its modules was speaking."""

    text: str
    module_path: str = ""
    module_type: str = ""
    rows: int | None = None  # when that module is an embedding


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of trying one set of sizes."""

    said: Refusal | None
    lowered: bool  # they were taken with small integers alone
    calls: int
    seconds: float  # of the last call that the model took; 0 if there was none


class Prober:
    """Calls the model at other sizes, remembers the answers, and keeps within a budget of calls and seconds.

    Nobody may ever feed these sizes, and a kernel may die of them: they are tried in a fork of this process, where there is
    such a thing. Use it as a context manager, after which the fork is gone.
    """

    def __init__(
        self, module: torch.nn.Module, tensors: Sequence[torch.Tensor], parts: Sequence[InputRole], *, calls: int, seconds: float
    ) -> None:
        self.module = eager.fresh(module)
        self._state = eager.SavedState(self.module)  # made once, put back after every call
        self.tensors = tuple(tensors)
        self.parts = tuple(parts)
        self.calls_left = calls
        self.ends = time.perf_counter() + seconds, time.process_time() + seconds
        self.answers: dict[Shapes, Refusal | None] = {}
        self.lowered: set[Shapes] = set()  # sizes that were taken only with small integers: they index something that moves
        self.seconds_per_call = 0.0
        self.outputs: int | None = None  # how many the example gives; a file gives as many at every size
        self.weights = sum(p.numel() for p in self.module.parameters())
        self.stand_ins: FakeTensorMode | None = None

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, *raised: object) -> None:
        if (apart := vars(self).get("_apart")) is not None:
            apart.__exit__(*raised)

    @property
    def spent(self) -> bool:
        """Whether the budget is used up."""
        clock, work = self.ends  # on a busy machine the clock runs while nothing is tried
        worked = time.process_time() + getattr(vars(self).get("_apart"), "seconds", 0.0)
        return self.calls_left <= 0 or (time.perf_counter() > clock and worked > work)

    def refusal(self, shapes: Sequence[Sequence[int]]) -> Refusal | None:
        """Return None if the model runs at these sizes, otherwise what it said."""
        key = tuple(tuple(s) for s in shapes)
        if key not in self.answers:
            if self.spent:
                return Refusal(NOT_TRIED)
            self.answers[key] = self._try(key)
        return self.answers[key]

    def use_stand_ins(self) -> None:
        """Try sizes on tensors without values from here on, if the model takes them: a big model then costs little."""
        self.stand_ins = FakeTensorMode(allow_non_fake_inputs=True)
        if self._call(self.tensors) is not None:
            self.use_tensors()

    def use_tensors(self) -> None:
        """Try sizes on real tensors again, and forget what stand-ins said."""
        self.stand_ins = None
        self.answers.clear()

    def runs(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether the model runs at these sizes."""
        return self.refusal(shapes) is None

    def _try(self, shapes: Shapes) -> Refusal | None:
        try:
            attempt = self._asked(shapes)
        except Died as death:
            return Refusal(NOT_TRIED if "no answer" in str(death) else f"the model does not survive these sizes: {death}")
        self.calls_left -= attempt.calls
        self.lowered |= {shapes} if attempt.lowered else set()
        self.seconds_per_call = attempt.seconds or self.seconds_per_call
        return attempt.said

    def _asked(self, shapes: Shapes) -> _Attempt:
        """Return what comes of trying sizes, apart where that can be: stand-ins have no kernels to die of."""
        return self._attempt(shapes) if self.stand_ins is not None or self._apart is None else self._apart.ask(shapes)

    @cached_property
    def _apart(self) -> Apart[Shapes, _Attempt] | None:
        """A fork that takes the example as this process does; none where there are no forks, or threads and locks are amiss."""
        if not can_fork(self.module) or self.mixed_runs is None:  # which must be known before there is a fork
            return None
        apart = Apart(self._attempt, LONGEST)
        try:
            if apart.ask(tuple(tuple(t.shape) for t in self.tensors), FIRST + 20 * self.seconds_per_call).said is None:
                return apart
        except Died:
            pass
        apart.__exit__()
        return None

    def _attempt(self, shapes: Shapes) -> _Attempt:
        """Return what comes of trying sizes, in this process or in a fork of it, whose own copy of this object is its own."""
        calls, seconds, self.seconds_per_call = self.calls_left, self.seconds_per_call, 0.0
        said = self._tried(shapes)
        attempt = _Attempt(said, shapes in self.lowered, calls - self.calls_left, self.seconds_per_call)
        self.calls_left, self.seconds_per_call = calls, seconds
        return attempt

    def _tried(self, shapes: Shapes) -> Refusal | None:
        made = tuple(resized(t, s, p) for t, s, p in zip(self.tensors, shapes, self.parts, strict=True))
        if self.mixed_runs:  # a mask that hides nothing is often not looked at: its sizes count when it hides something
            made = tuple(_mixed(t, p) for t, p in zip(made, self.parts, strict=True))
        said = self._call(made)
        if said is not None and may_be_past_an_end(said.text):  # of something that shrank: try indices that fit anywhere
            said = self._lowered(shapes, made, said)
        return said

    def _lowered(self, shapes: Shapes, made: tuple[torch.Tensor, ...], said: Refusal) -> Refusal | None:
        for top in (1, 0):
            low = tuple(_low(t, p, top) for t, p in zip(made, self.parts, strict=True))
            if any(a is not b for a, b in zip(low, made, strict=True)) and self._call(low) is None:
                self.lowered.add(shapes)
                return None
        return said

    @cached_property
    def mixed_runs(self) -> bool:
        """Whether there are masks, and the model takes the example with masks that hide something."""
        return (
            any(p.role in ("mask", "bool") for p in self.parts)
            and self._call(tuple(_mixed(t, p) for t, p in zip(self.tensors, self.parts, strict=True))) is None
        )

    def _call(self, tensors: tuple[torch.Tensor, ...]) -> Refusal | None:
        self.calls_left -= 1
        began = time.perf_counter()
        try:
            with eager.kept(self._state), eager.plainly(), no_warnings():
                if self.stand_ins is None:
                    given = eager.call_on_made_input(self.module, tensors)
                else:
                    fakes = [self.stand_ins.from_tensor(t) for t in tensors]
                    with self.stand_ins, torch.no_grad():
                        given = self.module(*fakes)
        except eager.NoAnswer:  # slow is not refused; a bound must not hang on how busy the machine is
            return Refusal(NOT_TRIED)
        except Exception as error:  # any model may raise anything; that it refuses is the answer
            return self._refusal(error)
        self.seconds_per_call = time.perf_counter() - began
        if self.outputs not in (None, len(given)):
            return Refusal(f"there are {len(given)} outputs at another size, here {self.outputs}")
        return None

    def _refusal(self, error: Exception) -> Refusal:
        """Return what was said, with the innermost module on the way there."""
        paths = {id(m): path for path, m in self.module.named_modules()}
        speaking: Any = None
        trace = error.__traceback__
        while trace is not None:
            owner = trace.tb_frame.f_locals.get("self")
            if id(owner) in paths:
                speaking = owner
            trace = trace.tb_next
        path = paths.get(id(speaking), "").removeprefix("model").removeprefix(".")
        rows = speaking.num_embeddings if isinstance(speaking, torch.nn.Embedding) else None
        return Refusal(f"{type(error).__name__}: {error}".strip(), path, type(speaking).__name__, rows)


def _low(tensor: torch.Tensor, part: InputRole, top: int) -> torch.Tensor:
    return tensor.clamp(max=top) if part.role in ("int", "ids", "lengths", "positions") else tensor


def _mixed(tensor: torch.Tensor, part: InputRole) -> torch.Tensor:
    """Return a mask with its last half turned over; anything else as it is."""
    if part.role not in ("mask", "bool") or not tensor.dim() or tensor.shape[-1] < 2:
        return tensor
    turned = tensor.clone()
    half = tensor.shape[-1] // 2 + tensor.shape[-1] % 2
    turned[..., half:] = (turned[..., half:] == 0).to(tensor.dtype)
    return turned


def moved(shapes: Sequence[Sequence[int]], changes: Mapping[Axis, int]) -> Shapes:
    """Return the shapes with some axes set to other sizes."""
    return tuple(tuple(changes.get((i, a), n) for a, n in enumerate(shape)) for i, shape in enumerate(shapes))


@dataclass(frozen=True, slots=True)
class Observed:
    """One call of a flat module: its named outputs, the tables that it looked into, and what it searched by halving."""

    outputs: list[tuple[str, Any]]
    tables: list[Lookup]
    searched: list[torch.Tensor]
    seconds: float = 0.0
    indexed: Sequence[tuple[int, torch.Tensor]] = ()  # how far each index may go, and the indices


def observe(module: Any, tensors: Sequence[torch.Tensor]) -> Observed:
    """Return what a call of the flat module gives and uses; raises what the user's model raises."""
    seen: list[tuple[str, Any]] = []

    def call(*flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen[:] = module.named_outputs(flat)
        return ()

    lookups = Lookups(module)
    began = time.perf_counter()
    with eager.untouched(module), eager.plainly(), lookups:
        eager.call(call, tuple(tensors), of=module)
    return Observed(seen, lookups.seen, lookups.searched, time.perf_counter() - began, lookups.indexed)
