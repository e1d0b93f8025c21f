"""Models that are odd in what they hold are as they were after an export."""

from __future__ import annotations

import array
import copy
import functools
import io
import os
import queue
import signal
import sys
import threading
import types
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import torchferry
from torchferry import eager
from torchferry.errors import UsageError

COUNTED = {"calls": 0}
EXAMPLE = (torch.ones(2, 3),)


class ReturnsItself(nn.Linear):
    def __deepcopy__(self, memo: Any) -> Any:
        return self


def test_a_part_that_calls_itself_its_own_copy_keeps_its_weights() -> None:
    model = nn.Sequential(ReturnsItself(3, 3), nn.Tanh()).eval()
    before = model[0].weight.detach().clone()
    assert torchferry.export(model, EXAMPLE).ok
    assert torch.equal(model[0].weight, before)


class InAList(nn.Module):
    """Calls a layer through a function in a list, which a copy shares, and has the layer written to."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.Linear(3, 3)
        self.layer, self.steps = layer, [lambda x: (layer.weight.data.add_(1), layer(x))[1]]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.steps[0](x)


def test_a_layer_behind_a_function_in_a_list_keeps_its_weights() -> None:
    model = InAList().eval()
    before = model.layer.weight.detach().clone()
    torchferry.export(model, EXAMPLE, check=False)
    assert torch.equal(model.layer.weight, before)


def test_layers_that_a_function_closes_over_in_a_list_keep_their_weights() -> None:
    layers = [nn.Linear(3, 3)]

    def model(x: torch.Tensor) -> torch.Tensor:
        layers[0].weight.data.add_(1)
        return layers[0](x)

    before = layers[0].weight.detach().clone()
    torchferry.export(model, EXAMPLE, check=False)
    assert torch.equal(layers[0].weight, before)


class Holding(nn.Module):
    """Writes to a global, a default argument, a cache, a namespace, a queue, and to memory that it gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.space = types.SimpleNamespace(count=0, lock=threading.Lock())
        self.waiting: queue.Queue[int] = queue.Queue()
        self.register_buffer("scale", torch.ones(3))

    @functools.lru_cache  # noqa: B019
    def looked_up(self, size: int) -> int:
        return size

    def forward(self, x: torch.Tensor, seen: list[int] = []) -> torch.Tensor:  # noqa: B006
        COUNTED["calls"] += 1
        seen.append(1)
        self.space.count += 1
        self.waiting.put(1)
        self.looked_up(int(x.shape[1]))
        y = x * self.scale
        self.scale.untyped_storage().resize_(0)
        self.scale.untyped_storage().resize_(12)
        self.scale.fill_(1)
        return y


def test_what_lies_outside_of_a_model_and_is_written_to_by_it_is_put_back() -> None:
    model = Holding().eval()
    with eager.untouched(model):
        model(*EXAMPLE)
        assert COUNTED["calls"] == 1
    assert COUNTED["calls"] == 0
    assert Holding.forward.__defaults__ == ([],)
    assert (model.space.count, model.waiting.qsize(), Holding.looked_up.cache_info().currsize) == (0, 0, 0)


class Counter:
    calls = 0

    @property
    def told(self) -> int:
        COUNTED["property"] = 1
        return 1


LOCAL = threading.local()
LOCAL.calls = 0
THINGS: dict[Any, Any] = {"set": weakref.WeakSet(), "text": io.StringIO("begin"), "numbers": array.array("i", [1])}
EXACTLY = {torch.ones(2): 0}


class Named(dict):  # type: ignore[type-arg]
    """Has an attribute, and ways of its own."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.written = getattr(self, "written", 0) + 1


NAMED = Named()
counters: Any = types.ModuleType("counters")
counters.__file__, counters.calls = __file__, 0


def helper(x: torch.Tensor, known: list[int] = []) -> torch.Tensor:  # noqa: B006
    COUNTED["helper"] = 1
    known.append(1)
    helper.calls = getattr(helper, "calls", 0) + 1  # type: ignore[attr-defined]
    Counter.calls += 1
    assert Counter().told
    counters.calls += 1
    LOCAL.calls += 1
    THINGS["set"].add(x)
    THINGS["text"].write("written")
    THINGS["numbers"].append(2)
    EXACTLY[x] = 1
    NAMED["a"] = 1
    [COUNTED.update({str(i): i}) for i in range(2)]
    return x


def seen_by_helper() -> list[Any]:
    attributes = {name: value for name, value in vars(Counter).items() if name == "calls"}
    things = [len(THINGS["set"]), THINGS["text"].getvalue(), THINGS["text"].tell(), list(THINGS["numbers"]), len(EXACTLY)]
    own = [dict(NAMED), vars(NAMED).copy(), dict(vars(LOCAL)), counters.calls]
    return [dict(COUNTED), list(helper.__defaults__ or ()), vars(helper).copy(), attributes, things, own]


class Helped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return helper(x)


def test_what_a_function_that_forward_calls_writes_to_is_put_back() -> None:
    model, before = Helped().eval(), str(seen_by_helper())
    with eager.untouched(model):
        model(*EXAMPLE)
        assert str(seen_by_helper()) != before
    assert str(seen_by_helper()) == before


def test_what_code_that_lies_in_no_file_writes_to_is_put_back() -> None:
    space: dict[str, Any] = {}
    exec(compile("calls = [0]\ndef model(x):\n    calls[0] += 1\n    return x * 2", "<string>", "exec"), space)
    torchferry.export(space["model"], EXAMPLE)
    assert space["calls"] == [0]


def test_attributes_of_weights_are_there_in_a_copy_and_its_own() -> None:
    model = nn.Linear(3, 3)
    model.weight.told = [1]  # type: ignore[attr-defined]
    copied = eager.fresh(model)
    copied.weight.told.append(2)  # type: ignore[attr-defined, union-attr, operator]
    assert model.weight.told == [1]  # type: ignore[attr-defined]


class Generating(nn.Module):
    def __init__(self, copied: bool) -> None:
        super().__init__()
        self.fc, self.values, self.copied = nn.Linear(3, 3), (i for i in range(1000)), copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.copied:
            raise TypeError("this one is not copied")
        made = Generating(True)
        made.fc, made.values = copy.deepcopy(self.fc, memo), copy.deepcopy(self.values, memo)
        return made

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + next(self.values)


@pytest.mark.parametrize("copied", [True, False])
def test_a_generator_is_not_advanced_and_that_is_said(copied: bool) -> None:
    model = Generating(copied).eval()
    try:
        told = str(torchferry.export(model, EXAMPLE, check=False))
    except UsageError as refused:
        told = str(refused)
    assert "generator" in told
    assert next(model.values) == 0


def test_a_generator_that_nobody_asks_is_no_trouble() -> None:
    model = nn.Linear(3, 3).eval()
    model.unused = model.parameters()  # type: ignore[assignment]
    assert torchferry.export(model, EXAMPLE).ok
    assert len(list(model.unused)) == 2  # type: ignore[arg-type]


class Ending(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit("no more")


def test_a_model_that_ends_the_program_is_one_that_raises() -> None:
    told = torchferry.export(Ending(), EXAMPLE, check=False)
    assert [d.code for d in told.diagnoses] == ["INP001"]
    assert "SystemExit: no more" in str(told)


def test_a_signal_that_ends_the_program_ends_it_while_a_model_is_called() -> None:
    class Signalled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            signal.raise_signal(signal.SIGTERM)
            return x

    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
    try:
        with pytest.raises(SystemExit):
            torchferry.export(Signalled(), EXAMPLE, check=False)
    finally:
        signal.signal(signal.SIGTERM, before)


class Cast(nn.Module):
    """Becomes another class, with other attributes, when it is called; and is not copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("this one is not copied")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.__dict__ = dict(vars(self), new=1)
        self.__class__ = Other  # type: ignore[assignment]
        return x + 1


class Other(Cast):
    pass


def test_an_object_is_of_its_class_with_its_attributes_again() -> None:
    model = Cast().eval()
    attributes = vars(model)
    with eager.untouched(model):
        model(*EXAMPLE)
    assert type(model) is Cast
    assert vars(model) is attributes
    assert "new" not in attributes


def test_children_that_are_forgotten_as_they_end_are_no_trouble() -> None:
    handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert torchferry.export(nn.Linear(3, 3).eval(), EXAMPLE).ok
    finally:
        signal.signal(signal.SIGCHLD, handler)


def test_two_threads_that_export_leave_the_generators_as_they_were() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    models = [nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).eval() for _ in range(2)]
    torch.manual_seed(5)
    threads = [threading.Thread(target=torchferry.export, args=(m, EXAMPLE)) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fork_may_export_whatever_its_parent_was_doing() -> None:
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with eager.one_at_a_time:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        with eager.one_at_a_time:
            os.kill(os.getpid(), signal.SIGKILL)
    over.set()
    thread.join()
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
