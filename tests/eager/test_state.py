"""Nothing of a model is changed by running it: whatever it writes to is put back, into the objects that it was in."""

from __future__ import annotations

import functools
import signal
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import torchferry
from torchferry import eager, memory
from torchferry.capture.rewrites import sites
from torchferry.deadline import time_limit
from torchferry.eager import copies, put_back, reached, stand_ins, state
from torchferry.foreign.replaced import replaced
from torchferry.foreign.torch_tracing import FakeTensorMode
from torchferry.records.sites import Site


class Cell:
    """An object of the user's own, with a slot."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Writer(nn.Module):
    """Writes to everything it has, at every call; and cannot be copied, as it has a lock and a way of its own to fail."""

    calls = 0
    log: ClassVar[list[int]] = []

    def __init__(self, copied: bool = False) -> None:
        super().__init__()
        self.fc, self.hidden = nn.Linear(3, 3), [nn.Linear(3, 3)]
        self.moved = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.plain, self.array = torch.zeros(3), np.zeros(3)
        self.kinds, self.recent, self.nested = {1}, deque([1], maxlen=3), [[1], {"a": [2]}]
        self.generator, self.cell, self.lock = torch.Generator().manual_seed(0), Cell(), threading.Lock()
        self.copied = copied

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("this one is not copied")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.fc.weight.add_(1)
            self.hidden[0].weight.data.mul_(2)
            self.moved.data = self.moved.data + 1
            self.mean.data.add_(1)
            self.plain.add_(1)
        self.array += 1
        self.kinds.add(len(self.kinds) + 1)
        self.recent.append(2)
        self.nested[0].append(3)
        self.nested[1]["a"].append(3)  # type: ignore[index]
        self.cell.count += 1
        type(self).calls += 1
        self.log.append(1)
        self.fc.bias.grad = torch.ones(3)
        torch.rand(1, generator=self.generator)
        self.new = x
        return self.hidden[0](self.fc(x)) + self.moved + self.mean


def seen(model: Writer) -> list[Any]:
    tensors = [*model.parameters(), model.hidden[0].weight, model.mean, model.plain, model.generator.get_state()]
    held = [model.array.tolist(), set(model.kinds), list(model.recent), str(model.nested), model.cell.count, list(Writer.log)]
    return [*(t.detach().clone().tolist() for t in tensors), *held, Writer.calls, model.fc.bias.grad, sorted(vars(model))]


def test_what_a_call_writes_to_is_put_back() -> None:
    model = Writer().eval()
    before, memory = seen(model), model.moved.data_ptr()
    objects = [id(v) for v in (model.kinds, model.recent, model.nested, model.nested[0], model.moved, vars(model))]
    with eager.untouched(model, with_weights=True):
        model(torch.randn(2, 3))
        assert seen(model) != before
    assert seen(model) == before
    assert model.moved.data_ptr() == memory
    assert [id(v) for v in (model.kinds, model.recent, model.nested, model.nested[0], model.moved, vars(model))] == objects


def test_a_model_that_cannot_be_copied_is_as_it_was_after_an_export() -> None:
    model = Writer().eval()
    before = seen(model)
    torchferry.export(model, (torch.randn(2, 3),), check=False)
    assert seen(model) == before


class Locked(nn.Module):
    """Has what nothing can copy, and writes to its parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.lock, self.history = nn.Linear(3, 3), threading.Lock(), nn.Linear(3, 3)(torch.ones(3))
        self.numbers = (n for n in range(10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock, torch.no_grad():
            self.fc.weight.add_(1)
            return self.fc(x) + self.history


def test_what_cannot_be_copied_is_shared_with_a_copy_of_all_the_rest() -> None:
    model = Locked().eval()
    copied = eager.fresh(model)
    assert copied is not model
    assert copied.lock is model.lock
    assert copied.history is not model.history
    before = model.fc.weight.clone()
    copied(torch.ones(1, 3))
    assert torch.equal(model.fc.weight, before)
    assert not torch.equal(copied.fc.weight, before)


@pytest.mark.parametrize("write", [lambda p: p.data.add_(1), lambda p: p.add_(1), lambda p: setattr(p, "data", p.data + 1)])
def test_a_large_models_weights_are_not_written_to(write: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Large(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                write(self.fc.weight)
            return self.fc(x)

    monkeypatch.setattr(copies, "WHOLE_COPY_BYTES", 64)
    model = Large().eval()
    before, memory = model.fc.weight.clone(), model.fc.weight.data_ptr()
    copied = eager.fresh(model)
    assert copied.fc.weight.data_ptr() == memory
    first = eager.call(copied, (torch.ones(1, 8),))
    with torch.no_grad():
        assert not torch.equal(first[0], before.sum(1) + model.fc.bias)
    torchferry.export(model, (torch.randn(2, 8),), check=False)
    assert torch.equal(model.fc.weight, before)
    assert model.fc.weight.data_ptr() == memory


def test_without_memory_for_a_copy_a_model_that_writes_to_its_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Large(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.weight.data.add_(1)
            return super().forward(x)

    monkeypatch.setattr(copies, "WHOLE_COPY_BYTES", 64)
    monkeypatch.setattr(memory, "free", lambda: 10)
    model = Large(8, 8).eval()
    before = model.weight.clone()
    told = torchferry.export(model, (torch.randn(2, 8),), check=False)
    assert not told.ok
    assert "writes to its weights" in str(told)
    assert torch.equal(model.weight, before)


def test_a_hooks_handle_still_removes_it_after_an_export() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()
    handle = model[0].register_forward_hook(lambda m, i, o: None)
    torchferry.export(model, (torch.randn(2, 3),))
    handle.remove()
    assert not model[0]._forward_hooks


def interrupted(number: int, files: set[str], action: Callable[[], None], times: int = 1) -> int:
    """Run an action and raise KeyboardInterrupt at one of the lines that it runs in some files; return how many there were."""
    count = left = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count, left
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            count += 1
            if count >= number and left < times:
                left += 1
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return count


def modes_work() -> bool:
    class Shadow(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "called"

    return torch.add(torch.ones(1).as_subclass(Shadow), 1) == "called"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("times", [1, 2])
def test_no_line_of_saving_and_restoring_can_be_interrupted_to_leave_a_model_changed(times: int) -> None:
    model = Writer().eval()
    before, x = seen(model), torch.randn(2, 3)

    def run() -> None:
        with eager.untouched(model, with_weights=True):
            model(x)

    files = {module.__file__ for module in (state, put_back, reached, stand_ins)}
    lines = interrupted(10**9, files, run)
    assert lines > 300
    step = max(1, lines // 40)
    for number in [*range(1, lines, step), *range(lines - 30, lines + 1)]:
        with eager.balanced():
            interrupted(number, files, run, times)
        assert seen(model) == before, f"interrupted at line {number} of {lines}"
        assert torch.is_grad_enabled()
        assert modes_work(), f"interrupted at line {number} of {lines}"


def test_a_signal_that_comes_while_a_model_is_restored_waits() -> None:
    model = Writer().eval()
    before = seen(model)

    class Slow(state.SavedState):
        def restore(self) -> None:
            signal.raise_signal(signal.SIGINT)
            super().restore()
            signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    try:
        with pytest.raises(KeyboardInterrupt), Slow(model, with_weights=True).kept():
            model(torch.randn(2, 3))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert seen(model) == before


def test_a_repeating_timer_of_the_users_goes_on() -> None:
    rang: list[float] = []
    handler = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(time.monotonic()))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with time_limit(10, "a block"):
            time.sleep(0.02)
        time.sleep(0.4)
        assert len(rang) >= 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        if y.sum() > 0:
            return y * 2
        return y - 1


def test_a_model_runs_as_written_in_another_thread_while_it_is_exported() -> None:
    torch.manual_seed(0)
    model, x = Branching().eval(), torch.randn(2, 3)
    want, over, faults = model(x), threading.Event(), list[str]()

    def serve() -> None:
        while not over.is_set():
            try:
                if not torch.equal(model(x), want):
                    faults.append("differs")
            except Exception as error:
                faults.append(repr(error))

    server = threading.Thread(target=serve)
    server.start()
    try:
        result = torchferry.export(model, (x,))
    finally:
        over.set()
        server.join()
    assert any(r.code == "CAP001" for r in result.repairs)
    assert not faults


def test_rewritten_code_is_for_the_thread_that_rewrites() -> None:
    torch.manual_seed(0)
    model, x = Branching().eval(), torch.randn(2, 3)
    line = Branching.forward.__code__.co_firstlineno + 2
    site = Site(__file__, line, line - 2, "branch", "cond")
    here: list[Any] = []
    with sites.applied(eager.fresh(model), [site]):
        made = Branching.forward.__code__.co_names
        thread = threading.Thread(target=lambda: here.append(model(x)))
        with replaced(torch, {"cond": lambda *a, **k: "rewritten"}):
            thread.start()
            thread.join()
            assert model(x) == "rewritten"
    assert "cond" in made
    assert torch.equal(here[0], model(x))


def test_what_is_saved_among_stand_ins_is_not_one() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    before = [t.clone() for t in model.state_dict().values()]
    with FakeTensorMode(allow_non_fake_inputs=True), eager.untouched(model, with_weights=True):
        pass
    after = list(model.state_dict().values())
    assert all(type(t) in (torch.Tensor, nn.Parameter) for t in after)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


class Loading(dict[str, Any]):
    """A registry that makes something of what it holds whenever it is asked, which fails."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(f"{key} cannot be loaded here")

    get = __getitem__  # type: ignore[assignment]

    def values(self) -> Any:
        return [self[key] for key in self]


class LoadingInOrder(OrderedDict[str, Any]):
    """The same with an order of its own."""

    __getitem__ = Loading.__getitem__
    get = Loading.get  # type: ignore[assignment]
    values = Loading.values


REGISTRY, IN_ORDER = Loading(one=1, two=2), LoadingInOrder(one=1, two=2)


class WithRegistries(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        REGISTRY["three"] = IN_ORDER["three"] = 3
        return x + len(REGISTRY) + len(IN_ORDER)


def test_registries_that_load_what_they_are_asked_for_are_never_asked() -> None:
    model = WithRegistries()
    with eager.untouched(model):
        model(torch.ones(1))
        IN_ORDER.move_to_end("one")
        assert len(REGISTRY) == 3
    assert dict.items(REGISTRY) == {"one": 1, "two": 2}.items()
    assert list(OrderedDict.items(IN_ORDER)) == [("one", 1), ("two", 2)]
    assert torchferry.export(model, (torch.ones(2, 3),), budget=torchferry.Budget(trials=4, mutants=0)).ok


def test_a_type_with_its_arguments_is_no_object_with_attributes_of_its_own() -> None:
    model = nn.Linear(3, 3)
    model.takes = {"sizes": list[int], "names": dict[str, int], "kinds": list[Cell]}  # type: ignore[assignment]
    with eager.untouched_by_runs(model):
        model.takes["sizes"] = None
    assert model.takes == {"sizes": list[int], "names": dict[str, int], "kinds": list[Cell]}


class Half(functools.partial[Any]):
    """A class of the user's own on one that is written in C, whose members cannot be set."""


def test_members_of_a_class_written_in_c_are_not_set_again() -> None:
    model, scale = nn.Linear(3, 3), [1.0]
    model.half = Half(max, scale)  # type: ignore[assignment]
    with eager.untouched_by_runs(model):
        scale.append(2.0)
    assert scale == [1.0]  # what such a member holds is put back all the same
