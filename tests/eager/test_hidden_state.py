"""State that a model keeps where one hardly looks for it is as it was after a call, and a copy that is none is not used."""

from __future__ import annotations

import collections
import contextvars
import copy
import ctypes
import itertools
import mmap
import random
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import torchferry
from torchferry import eager
from torchferry.errors import UsageError

X = (torch.ones(2, 3),)


class Box:
    """An object that counts."""

    count = 0

    def __hash__(self) -> int:
        return 1


class Meta(type):
    calls = 0


class OfMeta(metaclass=Meta):
    ids = itertools.count()

    def method(self) -> int:
        return 1


def counting() -> Callable[[], int]:
    total = 0

    def step(read: bool = False) -> int:
        nonlocal total
        total += not read
        return total

    return step


def by_default(number: int = 0) -> int:
    return number


def lazily() -> None:
    global MADE
    MADE = 1  # type: ignore[name-defined]


def set_anew() -> None:
    PACKAGE.inner.made = 1


def other_module() -> types.ModuleType:
    package, inner = types.ModuleType("written_package"), types.ModuleType("written_package.inner")
    package.__file__ = inner.__file__ = __file__
    package.inner, inner.calls = inner, 0  # type: ignore[attr-defined]
    return package


def written_inside() -> None:
    import late_module

    late_module.calls += 1


sys.modules["late_module"] = late = types.ModuleType("late_module")
late.__file__, late.calls = __file__, 0  # type: ignore[attr-defined]
PACKAGE: Any = other_module()
COUNT, ROW, CYCLE = itertools.count(), iter([1, 2, 3, 4]), itertools.cycle([1, 2])
PUSHED = [1]
STEP, VARIABLE = counting(), contextvars.ContextVar[list[int]]("VARIABLE", default=[])  # noqa: B039
KEYED, WEAK = {Box(): 1}, Box()
HELD_WEAKLY = weakref.WeakValueDictionary({"a": WEAK})
REFERENCE, PROXY = weakref.ref(WEAK), weakref.proxy(WEAK)
BITS, MEMORY, MAPPED, NUMBERS = np.random.PCG64(1), memoryview(bytearray(2)), mmap.mmap(-1, 2), (ctypes.c_int * 2)()
OBJECTS = np.empty(2, dtype=object)
OBJECTS[:] = [Box(), 0]
READ_ONLY = types.MappingProxyType({"a": [1]})
SPARSE = torch.eye(2).to_sparse()
CHAIN = collections.ChainMap({})
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    QUANTISED = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
with torch.inference_mode():
    INFERRED = torch.zeros(2)
TEXT = Path(__file__).open(encoding="utf-8")  # noqa: SIM115


def write_to_memory() -> None:
    MEMORY[0] = MAPPED[0] = 7
    NUMBERS[1] = 7


def write_to_tensors() -> None:
    SPARSE.mul_(2)
    QUANTISED.copy_(torch.zeros(2))
    with torch.inference_mode():
        INFERRED.add_(1)


def write_to_weak() -> None:
    HELD_WEAKLY["a"].count += 1
    REFERENCE().count += 1  # type: ignore[union-attr]
    PROXY.count += 1


def patch_class() -> None:
    OfMeta.method = lambda self: 2  # type: ignore[method-assign]
    next(OfMeta.ids)


def write_to_objects() -> None:
    OBJECTS[0].count += 1
    OBJECTS[1] += 1


# what a call does, and what tells whether it was done
WRITTEN: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "an iterator": (lambda: next(COUNT), lambda: repr(COUNT)),
    "an iterator over a list": (lambda: next(ROW), lambda: next(copy.copy(ROW))),
    "an iterator that goes round": (lambda: next(CYCLE), lambda: next(copy.deepcopy(CYCLE))),
    "a variable closed over": (STEP, lambda: STEP(read=True)),
    "default arguments": (lambda: setattr(by_default, "__defaults__", (by_default() + 1,)), by_default),
    "a list in a context": (lambda: VARIABLE.get().append(1), lambda: list(VARIABLE.get())),
    "a method that is held": (PUSHED.clear, lambda: list(PUSHED)),
    "the key of a dict": (lambda: [setattr(k, "count", k.count + 1) for k in KEYED], lambda: [k.count for k in KEYED]),
    "a metaclass": (lambda: setattr(type(OfMeta), "calls", Meta.calls + 1), lambda: Meta.calls),
    "a class": (patch_class, lambda: (OfMeta().method(), repr(OfMeta.ids))),
    "what is referred to weakly": (write_to_weak, lambda: WEAK.count),
    "a source of random bits": (lambda: BITS.random_raw(1), lambda: str(BITS.state)),
    "memory": (write_to_memory, lambda: (bytes(MEMORY), MAPPED[:], list(NUMBERS))),
    "an array of objects": (write_to_objects, lambda: (OBJECTS[0].count, OBJECTS[1])),
    "what is seen read only": (lambda: READ_ONLY["a"].append(1), lambda: str(READ_ONLY)),
    "maps in a row": (lambda: CHAIN.update(a=1), lambda: str(CHAIN)),
    "other tensors": (write_to_tensors, lambda: str((SPARSE.to_dense(), QUANTISED, INFERRED))),
    "the place in a file": (lambda: TEXT.read(9), TEXT.tell),
    "a global that was not there": (lazily, lambda: "MADE" in globals()),
    "what is set anew in a module": (set_anew, lambda: sorted(vars(PACKAGE.inner))),
    "a module in a package": (lambda: setattr(PACKAGE.inner, "calls", PACKAGE.inner.calls + 1), lambda: PACKAGE.inner.calls),
    "a module that is imported late": (written_inside, lambda: late.calls),
}


class Calling(nn.Module):
    """Calls a function, as part of the model."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__()
        self.function, self.entropy = function, random.SystemRandom()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.function()
        return x * 2


@pytest.mark.parametrize("where", WRITTEN)
def test_what_is_written_there_is_put_back(where: str) -> None:
    write, read = WRITTEN[where]
    model, before = Calling(write).eval(), read()
    with eager.untouched(model):
        eager.fresh(model)(*X)
        assert read() != before
    assert read() == before


def test_what_a_model_sets_in_a_context_is_not_set_in_the_callers() -> None:
    seen = contextvars.ContextVar("seen", default=0)

    class Setting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.set(seen.get() + 1)
            return x * 2

    torchferry.export(Setting(), X, check=False, budget=torchferry.Budget(trials=4, mutants=0))
    assert seen.get() == 0


def test_a_generator_among_the_globals_is_not_asked() -> None:
    values = (i for i in range(9))
    model = Calling(lambda: next(values))
    with pytest.raises(UsageError, match="generator"), eager.untouched(model):
        eager.fresh(model)(*X)
    assert next(values) == 0


class Weakly(nn.Module):
    """Has a part that knows it by a weak reference, and writes to it."""

    def __init__(self, refer: Callable[[Any], Any]) -> None:
        super().__init__()
        self.fc, self.part = nn.Linear(3, 3), nn.Module()
        vars(self.part)["whole"], self.part.wholes = refer(self), [refer(self)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole = self.part.whole() if isinstance(self.part.whole, weakref.ref) else self.part.whole
        with torch.no_grad():
            whole.fc.weight.add_(1)
        return whole.fc(x)


@pytest.mark.parametrize("refer", [weakref.ref, weakref.proxy])
def test_a_copy_refers_weakly_to_its_own_parts(refer: Callable[[Any], Any]) -> None:
    model = Weakly(refer).eval()
    before = model.fc.weight.tolist()
    with eager.untouched(model):
        copied = eager.fresh(model)
        copied(*X)
        assert refer is weakref.proxy or copied is not model
    assert model.fc.weight.tolist() == before


class Copied(nn.Module):
    """Has a way of its own to be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.factor, self.lock = nn.Linear(3, 3), 1.0, threading.Lock()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock:
            return self.fc(x) * self.factor


class WithOtherWeights(Copied):
    def __deepcopy__(self, memo: Any) -> Any:
        return WithOtherWeights()


class WithAnotherNumber(Copied):
    def __deepcopy__(self, memo: Any) -> Any:
        made = WithAnotherNumber()
        made.load_state_dict(self.state_dict())
        return made


class WithoutItsLock(Copied):
    def __getstate__(self) -> Any:
        return {name: held for name, held in vars(self).items() if name != "lock"}


class AsNothing(Copied):
    def __deepcopy__(self, memo: Any) -> Any:
        return None


class InSlots(Copied):
    __slots__ = ("calls",)

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x)


class SeenByAnArray(Copied):
    """Writes to a weight through numpy's view of it, which in a copy is no view."""

    def __init__(self) -> None:
        super().__init__()
        self.view = self.fc.weight.detach().numpy()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.view += 1
        return super().forward(x)


@pytest.mark.parametrize("kind", [SeenByAnArray, WithOtherWeights, WithAnotherNumber, WithoutItsLock, AsNothing, InSlots])
def test_what_is_run_is_like_the_model(kind: type[Copied]) -> None:
    model = kind().eval()
    model.factor = 7.0
    calls = getattr(model, "calls", None)
    with eager.untouched(model, with_weights=True):
        expected = model(*X)
    with eager.untouched(model):
        assert torch.equal(eager.fresh(model)(*X), expected)
    assert getattr(model, "calls", None) == calls


def test_an_honest_copy_is_used() -> None:
    model = nn.Sequential(nn.LSTM(3, 3, batch_first=True), nn.Module()).eval()
    model[1].not_a_number, model[1].buffer = float("nan"), torch.full((2,), torch.nan)  # type: ignore[assignment]
    assert eager.fresh(model) is not model


def test_the_copy_of_a_compiled_model_is_used_whatever_was_asked_of_either() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        model = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval())
    model(torch.ones(2, 3))  # now it has `forward` at hand
    copied = eager.fresh(model)
    assert copied is not model
    with torch.no_grad():
        next(copied.parameters()).add_(1)
    assert not torch.equal(next(copied.parameters()), next(model.parameters()))


def test_a_global_that_somebody_else_makes_meanwhile_is_theirs() -> None:
    """A notebook's next cell, run while a thread exports: a model that sets an attribute of that name has not made it."""

    class Setting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.of_a_notebook = x
            return x

    with eager.untouched(Setting()):
        globals()["of_a_notebook"] = 1
    assert globals().pop("of_a_notebook", None) == 1
