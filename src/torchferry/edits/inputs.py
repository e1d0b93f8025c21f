"""Edits of the inputs stage: which argument is which, and how much is declared of a size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchferry.records import Edit

Cut = tuple[int, int | None, int]  # from, to, in steps of


@dataclass(frozen=True, slots=True)
class BindByName(Edit):
    """Take the arguments that were given by position for the parameters of these names."""

    stage, name = "inputs", "bind-by-name"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Narrow(Edit):
    """Declare less: some sizes in a smaller range, or (None) fixed at the example's; with the reason and its place.

    A later one counts, and may give back sizes that an earlier one took (`released`).
    """

    stage, name = "inputs", "narrow"
    sizes: Mapping[str, Cut | None]
    code: str = ""  # of the diagnosis that is to blame
    why: str = ""
    file: str | None = None
    line: int | None = None
    released: tuple[str, ...] = ()
