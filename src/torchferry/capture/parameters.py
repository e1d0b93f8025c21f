"""Functions with parameters of given names: torch.export names the inputs of a program after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def with_parameters(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """Return a function that takes parameters of these names and passes them on by position."""
    given = ", ".join(names)
    return eval(f"lambda {given}: function({given}{',' if given else ''})", {"function": function})  # type: ignore[no-any-return]
