"""torch's symbolic sizes, as the door has them."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import sympy
import torch

from torchferry.foreign import torch_shapes as door
from torchferry.foreign.torch_export import shape_env_of
from torchferry.ops.decomposed.sizes import OF_SIZES


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) if x.shape[1] > 3 else x.amax(1)


def seen_inside(look: Any, *shape: int) -> None:
    """Let `look` see a tensor whose sizes all move, inside of a capture."""

    class Looking(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            look(x)
            return x + 1

    dynamic = dict.fromkeys(range(len(shape)), torch.export.Dim.DYNAMIC)
    torch.export.export(Looking(), (torch.ones(shape),), dynamic_shapes=(dynamic,), strict=False)


def captured() -> Any:
    return torch.export.export(Branching(), (torch.ones(2, 5),), dynamic_shapes=({1: torch.export.Dim.DYNAMIC},), strict=False)


def test_a_size_tells_its_expression_and_its_example() -> None:
    def look(x: torch.Tensor) -> None:
        size: Any = x.shape[0]
        assert door.has_expression(size)
        assert isinstance(door.expression(size), sympy.Symbol)
        assert door.expression(size + 1) == door.expression(size) + 1
        assert (door.example_of(size), door.example_of(7)) == (5, 7)
        assert door.same_expression(size + 1, 1 + size)
        assert not door.same_expression(size, size + 1)
        assert door.statically_known_true(size >= 0)
        assert float(door.example_of(door.sym_sqrt(4))) == 2
        seen.append(size)

    seen: list[Any] = []
    seen_inside(look, 5, 6)
    assert seen


def test_a_size_that_comes_from_a_value_has_no_example() -> None:
    def look(x: torch.Tensor) -> None:
        size: Any = x.nonzero().shape[0]
        assert door.is_unbacked(size)
        assert not door.is_unbacked(x.shape[0])
        assert not door.is_unbacked(3)
        door.assume(size >= 1)
        assert door.statically_known_true(size >= 1)
        seen.append(size)

    seen: list[Any] = []
    seen_inside(look, 5)
    assert seen


def test_conditions_are_on_record_with_their_symbols_sources() -> None:
    env = shape_env_of(captured())
    [found] = [g for g in door.recorded(env) if sympy.sympify(3) in g.expression.atoms()]
    assert isinstance(found.place, traceback.FrameSummary)
    [symbol] = found.expression.free_symbols
    assert "L['x'].size()[1]" in list(door.sources_of(env, symbol))
    assert door.recorded(None) == []


def test_conditions_are_recorded_at_the_line_that_is_found() -> None:
    place = traceback.FrameSummary("mine.py", 17, "forward", lookup_line=False)
    with door.guards_placed_by(lambda: place):
        program = captured()
    assert [g.place for g in door.recorded(shape_env_of(program))].count(place) >= 1
    assert place not in [g.place for g in door.recorded(shape_env_of(captured()))]
    assert door.read_by_dynamo() == []


def test_sizes_that_happen_to_be_equal_or_1_are_symbols_of_their_own() -> None:
    from torch.fx.experimental import _config

    before = _config.backed_size_oblivious, _config.use_duck_shape
    with door.zero_and_one_as_others(), door.sizes_kept_apart():
        assert (_config.backed_size_oblivious, _config.use_duck_shape) == (True, False)
    assert (_config.backed_size_oblivious, _config.use_duck_shape) == before


def test_quotients_are_simplified_as_told() -> None:
    from torch.utils._sympy import functions

    asked: list[Any] = []
    with door.quotients_simplified_by(lambda e: asked.append(e) or e):
        assert functions.sympy.simplify(sympy.Integer(1)) == 1
        assert functions.sympy.Integer is sympy.Integer
    assert asked == [1]
    assert functions.sympy is sympy


@pytest.mark.parametrize("name", OF_SIZES)
def test_torch_has_the_functions_of_sizes_that_are_translated(name: str) -> None:
    assert isinstance(door.sym_functions()[name](0.5), float)


def test_an_environment_can_be_made_with_every_size_a_symbol() -> None:
    env = door.ShapeEnv(duck_shape=False, specialize_zero_one=False)
    context = door.StatelessSymbolicContext(dynamic_sizes=[door.DimDynamic.DYNAMIC])
    assert env.simplify(sympy.Integer(3)) == 3
    assert context.dynamic_sizes == [door.DimDynamic.DYNAMIC]
