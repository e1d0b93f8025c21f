"""torch's modes, as the door has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from torchferry.foreign import torch_dispatch as door


class Seen(door.EagerDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Refusing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ZeroDivisionError


def test_a_mode_sees_operators_and_those_that_take_functions() -> None:
    with Seen() as seen, torch.compiler.set_stance("force_eager"):
        torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.ones(1) + 1,))
    assert "aten.add.Tensor" in seen.names
    assert "cond" in seen.names


def test_modes_can_be_stepped_outside_of() -> None:
    with Seen() as seen, door.without_dispatch_modes():
        torch.ones(1) + 1
    assert seen.names == []
    with Refusing(), door.without_torch_function():
        torch.add(torch.ones(1), 1)


def test_a_level_that_an_error_left_on_the_stack_is_taken_off() -> None:
    assert door.transform_level() == 0
    torch._C._functorch._vmap_increment_nesting(2, "error")
    assert door.transform_level() == 1
    door.unwind_transforms(0)
    assert door.transform_level() == 0


def test_a_transform_that_goes_on_is_left_alone() -> None:
    levels: list[int] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        levels.append(door.transform_level())
        door.unwind_transforms(levels[-1])
        return x * 2

    assert torch.vmap(look)(torch.ones(3)).tolist() == [2, 2, 2]
    assert levels == [1]


@pytest.mark.parametrize("kind", [door.EagerDispatchMode, door.TorchDispatchMode])
def test_modes_are_classes_to_derive_from(kind: type) -> None:
    assert issubclass(kind, door.TorchDispatchMode)


def test_modes_that_an_exception_left_on_are_off_and_those_left_off_are_on() -> None:
    with Seen() as outer:
        with door.same_modes_after():
            torch.set_grad_enabled(False)
            Seen().__enter__()
            Refusing().__enter__()
            door.without_torch_function().__enter__()
        torch.add(torch.ones(1), 1)
        assert "aten.add.Tensor" in outer.names
        assert torch.is_grad_enabled()
        with Refusing(), pytest.raises(ZeroDivisionError):
            torch.add(torch.ones(1), 1)
        with door.same_modes_after():
            door.without_dispatch_modes().__enter__()
        outer.names.clear()
        torch.add(torch.ones(1), 1)
        assert "aten.add.Tensor" in outer.names
