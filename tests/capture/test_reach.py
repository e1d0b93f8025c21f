"""While a model is captured, other functions stand for Python's in the code that the model can reach, and in no other."""

from __future__ import annotations

import importlib
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from bound import agrees, bound, captured
from torch import nn

from torchferry import eager
from torchferry.capture.patches import active, numbers, reachable
from torchferry.capture.prepare.forward_mode import by_reverse_mode
from torchferry.records.findings import HostRandom
from torchferry.verify.run import replay

NEAR = """
import math
import random
from math import sqrt as root
import numpy as np

def half(n):
    return int(0.5 * n)

def many(shape):
    return np.prod(shape)

def side(n):
    return root(n) + math.sqrt(n)

def drawn():
    return random.random()
"""
FAR = """
import math
import random
from math import sqrt
import numpy as np
from torch.func import jvp
from numpy import prod

def half(n):
    return int(0.5 * n), len([n]), max(n, 1)

class Unused:
    def forward(self, x):
        return math.sqrt(x)
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """Yield two modules of a user's: one that models below reach, and one that has nothing to do with them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, code in (("near_the_model", NEAR), ("far_from_the_model", FAR)):
        (tmp_path / f"{name}.py").write_text(code)
    yield importlib.import_module("near_the_model"), importlib.import_module("far_from_the_model")
    for name in ("near_the_model", "far_from_the_model"):
        del sys.modules[name]


class Watched(nn.Module):
    """Calls a function of another module, and looks on the way at what others see."""

    def __init__(self, near: ModuleType, look: Any) -> None:
        super().__init__()
        self.half, self.look = near.half, look

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.look()
        return x * self.half(x.shape[0])


def seen(*owners: Any) -> list[dict[str, int]]:
    """Return what modules hold; torch.export changes `math.pow` for a while itself."""
    hidden = ("__builtins__", "__warningregistry__", "pow")
    return [{name: id(value) for name, value in vars(owner).items() if name not in hidden} for owner in owners]


def test_an_unrelated_module_is_untouched_while_a_capture_runs(modules: tuple[Any, Any]) -> None:
    near, far = modules
    bystanders = (far, math, np, np.random, random, eager, replay, numbers, reachable)
    before, looks = seen(*bystanders), []

    def look() -> None:
        looks.append(("int" in vars(near), seen(*bystanders) == before))

    model = Watched(near, look)
    step = captured(bound(model, (torch.ones(6, 2),), {0: {0: "n"}}))
    with active(model, []), by_reverse_mode(model):
        look()
    assert (True, True) in looks  # a capture was under way, and what the model reaches was changed
    assert all(untouched for _, untouched in looks)
    assert agrees(step, model, (torch.ones(8, 2),))
    assert (seen(*bystanders), "int" in vars(near)) == (before, False)


class Registry:
    def __init__(self, function: Any) -> None:
        self.table = {"half": [function]}


def through_name(near: ModuleType) -> Any:
    half = near.half
    return lambda self, x: x * half(x.shape[0])


def through_module(near: ModuleType) -> Any:
    return lambda self, x: x * near.half(x.shape[0])


def through_import(near: ModuleType) -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        import near_the_model

        return x * near_the_model.half(x.shape[0])

    return forward


def through_default(near: ModuleType) -> Any:
    return lambda self, x, half=near.half: x * half(x.shape[0])


def through_registry(near: ModuleType) -> Any:
    registry = Registry(near.half)
    return lambda self, x: x * registry.table["half"][0](x.shape[0])


def through_wrapper(near: ModuleType) -> Any:
    def inner(n: Any) -> Any:
        return near.half(n)

    return lambda self, x: x * inner(x.shape[0])


@pytest.mark.parametrize(
    "way",
    [through_name, through_module, through_import, through_default, through_registry, through_wrapper],
    ids=lambda w: w.__name__,
)
def test_a_function_is_reached_however_the_model_comes_by_it(way: Any, modules: tuple[Any, Any]) -> None:
    near, far = modules
    model = type("Model", (nn.Module,), {"forward": way(near)})()
    found = reachable.reached(model)
    assert any(scope is vars(near) for scope in found.scopes)
    assert not any(scope is vars(far) for scope in found.scopes)
    assert agrees(captured(bound(model, (torch.ones(6, 2),), {0: {0: "n"}})), model, (torch.ones(8, 2),))


def test_sizes_stay_symbolic_in_math_and_numpy_of_what_is_reached(modules: tuple[Any, Any]) -> None:
    near, _ = modules

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * near.side(x.shape[0]) + near.many(x.shape)

    assert agrees(captured(bound(Model(), (torch.ones(4, 2),), {0: {0: "n"}})), Model(), (torch.ones(9, 2),))


def test_math_that_a_function_imports_itself_is_symbolic_too() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            import math

            return x * math.sqrt(x.shape[0])

    assert "math" in reachable.reached(Model()).imports
    assert agrees(captured(bound(Model(), (torch.ones(4, 2),), {0: {0: "n"}})), Model(), (torch.ones(9, 2),))


def test_random_numbers_drawn_in_what_is_reached_are_noted(modules: tuple[Any, Any]) -> None:
    near, _ = modules

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * near.drawn() + np.random.rand()

    step = captured(bound(Model(), (torch.ones(4, 2),), {0: {0: "n"}}))
    noted = [f.function for f in step.findings if isinstance(f, HostRandom)]
    assert sorted(noted) == ["np.random.rand", "random.random"]


def test_code_of_a_notebook_which_has_no_file_is_reached_too() -> None:
    cell: dict[str, Any] = {"__name__": "notebook", "math": math, "nn": nn}
    exec("class Model(nn.Module):\n    def forward(self, x):\n        return x * math.sqrt(x.shape[0])", cell)
    model = cell["Model"]()
    assert agrees(captured(bound(model, (torch.ones(4, 2),), {0: {0: "n"}})), model, (torch.ones(9, 2),))
    assert cell["math"] is math
