"""Door to torch's symbolic sizes: the environment that keeps their conditions, and what can be asked of one size.

Relies on `torch.fx.experimental.symbolic_shapes` (ShapeEnv with `_get_stack_summary`, `guards` and `var_to_sources`;
has_free_unbacked_symbols, statically_known_true, SymIntEqByExpr), on the settings in `torch.fx.experimental._config`
(`backed_size_oblivious`, since torch 2.7; `use_duck_shape`), on `torch._guards.SLoc` and TracingContext, on
`torch.utils._sympy.functions`, on the `node` behind a SymInt (`expr`, `hint`, `shape_env`), on `torch._check` and `torch._sym_*`.
Should they move: torch.export's `range_constraints` and `torch.sym_*` are public; sizes as expressions are not.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import sympy
import torch

from torchferry.foreign.moved import relying_on
from torchferry.foreign.replaced import replaced

with relying_on("torch", "its symbolic sizes"):
    from torch._guards import SLoc, TracingContext
    from torch.fx.experimental import _config
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
        SymIntEqByExpr,
        has_free_unbacked_symbols,
        statically_known_true,
    )
    from torch.utils._sympy import functions as sympy_functions

    assume = torch._check  # of a condition on sizes: it is kept with the program, and taken to hold
    sym_sqrt = torch._sym_sqrt
    _stack_summary = ShapeEnv._get_stack_summary

__all__ = [
    "DimDynamic",
    "ShapeEnv",
    "StatelessSymbolicContext",
    "assume",
    "example_of",
    "expression",
    "guards_placed_by",
    "has_expression",
    "is_unbacked",
    "quotients_simplified_by",
    "read_by_dynamo",
    "recorded",
    "same_expression",
    "sizes_kept_apart",
    "sources_of",
    "statically_known_true",
    "sym_functions",
    "sym_sqrt",
    "zero_and_one_as_others",
]


# --- what can be asked of one size ---------------------------------------------------------------


def expression(size: Any) -> Any:
    """Return a size as sympy has it, over the symbols of its environment."""
    return size.node.expr


def has_expression(size: Any) -> bool:
    """Whether a size is one over symbols: torch has other kinds, such as those of nested tensors."""
    return hasattr(size.node, "expr")


def example_of(size: Any) -> Any:
    """Return a size as the example has it, which is no condition; a plain number as it is."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


def is_unbacked(size: Any) -> bool:
    """Whether a size comes from a value, so that no example of it is known."""
    return isinstance(size, torch.SymInt) and bool(has_free_unbacked_symbols(size))


def same_expression(one: Any, other: Any) -> bool:
    """Whether two sizes are one expression: asking for their values could tie them to the example."""
    return bool(SymIntEqByExpr(one) == SymIntEqByExpr(other))


def sym_functions() -> dict[str, Any]:
    """Return torch's functions of symbolic numbers that have no public name, by their names: "sqrt", "sin" and so on."""
    return {name.removeprefix("_sym_"): getattr(torch, name) for name in dir(torch) if name.startswith("_sym_")}


# --- what is kept of their conditions ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recorded:
    """A condition on sizes that a capture went by, and the line that asked for it."""

    expression: Any
    place: traceback.FrameSummary | None


def recorded(env: Any) -> list[Recorded]:
    """Return the conditions that an environment has on record; nothing where there is no environment."""
    return [Recorded(g.expr, _framed(g.sloc.framework_loc)) for g in getattr(env, "guards", ()) or ()]


def _framed(where: Any) -> traceback.FrameSummary | None:
    return where if where is not None and not isinstance(where, str) else None


def sources_of(env: Any, symbol: Any) -> Iterator[str]:
    """Yield how torch writes the sizes that a symbol stands for: `L['x'].size()[1]`."""
    for source in env.var_to_sources.get(symbol, ()):
        yield source.name if isinstance(source.name, str) else source.name()


def guards_placed_by(find: Callable[[], traceback.FrameSummary | None]) -> AbstractContextManager[None]:
    """Return a context in which each condition is recorded at the line that `find` gives, where it gives one."""

    def with_line(self: Any, is_debug: bool = False, framework_loc: str | None = None) -> tuple[Any, str]:
        place, text = _stack_summary(self, is_debug, framework_loc)
        frame = find()
        return (SLoc(frame, place.maybe_user_loc) if frame else place), text

    return replaced(ShapeEnv, {_stack_summary.__name__: with_line})


def read_by_dynamo() -> list[traceback.FrameSummary]:
    """Return the stack of the code that dynamo is going through symbolically at present."""
    return list(TracingContext.extract_stack())


# --- settings ------------------------------------------------------------------------------------


def zero_and_one_as_others() -> AbstractContextManager[Any]:
    """Return a context in which sizes of 0 and 1 are not set apart."""
    return _config.patch(backed_size_oblivious=True)  # type: ignore[no-any-return]


def sizes_kept_apart() -> AbstractContextManager[Any]:
    """Return a context in which sizes that happen to be equal are not the same size."""
    return _config.patch(use_duck_shape=False)  # type: ignore[no-any-return]


def quotients_simplified_by(simplify: Callable[..., Any]) -> AbstractContextManager[None]:
    """Return a context in which torch simplifies quotients of sizes in another way than by all that sympy knows."""
    other = ModuleType("sympy")
    vars(other).update(vars(sympy) | {"simplify": simplify})
    return replaced(sympy_functions, {"sympy": other})
