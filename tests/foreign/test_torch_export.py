"""The inside of torch.export, as the door has it."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest
import torch

from torchferry.foreign import torch_export as door


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) if x.shape[1] > 3 else x.amax(1)


def captured() -> Any:
    moving = {1: torch.export.Dim.DYNAMIC}
    options: dict[str, Any] = {"strict": False, "prefer_deferred_runtime_asserts_over_guards": False}
    return torch.export.export(Branching(), (torch.ones(2, 5),), dynamic_shapes=(moving,), **options)


def test_the_guards_of_a_program_are_code_and_outlive_a_decomposition() -> None:
    program = captured()
    guards = door.guards_of(program)
    assert any("L['x'].size()[1]" in g and "3" in g for g in guards)
    apart = program.run_decompositions({})
    assert door.guards_of(door.keep_guards(apart, guards)) == guards
    assert door.guards_of(object()) == ()


def test_a_program_with_another_graph_leaves_the_first_as_it_was() -> None:
    program = captured()
    other = door.with_graph_module(program, torch.fx.GraphModule(program.graph_module, program.graph))
    assert other.graph_module is not program.graph_module
    assert other.graph_signature is program.graph_signature


def test_the_environment_of_its_sizes_is_found() -> None:
    assert door.shape_env_of(captured()) is not None
    assert door.shape_env_of(torch.export.export(torch.nn.ReLU(), (torch.ones(2),))).guards == []


def test_a_program_takes_sizes_that_its_guards_refuse_once_these_are_off() -> None:
    program = captured()
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(torch.ones(2, 2))
    assert door.unchecked(program)(torch.ones(2, 2)).tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_becomes_a_program() -> None:
    args = (torch.ones(2),)
    made = door.from_script(torch.jit.trace(torch.nn.Sigmoid(), args), args)
    assert torch.equal(made.module()(*args), torch.ones(2).sigmoid())


def test_the_calls_of_a_capture_can_be_changed() -> None:
    class Slicing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:3]

    def change(func: Any, args: Any) -> Any:
        return (args[0], slice(0, 2)) if func is torch.Tensor.__getitem__ else args

    with door.calls_changed_by(change):
        program = torch.export.export(Slicing(), (torch.arange(5),), strict=False)
    assert program.module()(torch.arange(5)).tolist() == [0, 1]


def test_the_loggers_are_torchs_own() -> None:
    captured()
    assert set(door.LOGGERS) <= set(logging.root.manager.loggerDict)


def test_what_torch_says_when_it_has_no_advice_is_said_by_a_logger_that_is_known() -> None:
    from torch.fx.experimental import symbolic_shapes

    told = inspect.getsource(symbolic_shapes._suggest_torch_checks)
    assert "Unable to find user code" in told
    assert symbolic_shapes.log.name in door.LOGGERS
