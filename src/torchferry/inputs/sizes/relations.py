"""The algebra of sizes: relations between the sizes of axes, brought into the form in which they are tried and told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import sympy

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.probing import Axis


@dataclass(frozen=True, slots=True)
class Made:
    """A way in which a size is made of others; `strange` is how far-fetched it is."""

    strange: int
    whole: sympy.Expr
    parts: tuple[sympy.Symbol, ...]


def made_of(whole: int, parts: Sequence[int]) -> Iterator[Made]:
    """Yield the ways in which one size can be made of others: their sum or product, a multiple, some more than another."""
    symbols = tuple(sympy.Symbol(f"a{k}") for k in range(len(parts)))
    rest = whole - sum(parts)
    if len(parts) > 1 and rest == 0:
        yield Made(0, sympy.Add(*symbols), symbols)
    if len(parts) == 1 and whole % parts[0] == 0:
        yield Made(1, whole // parts[0] * symbols[0], symbols)
    if len(parts) == 2 and whole == parts[0] * parts[1]:
        yield Made(2, symbols[0] * symbols[1], symbols)
    if len(parts) == 1 and rest > 0:
        yield Made(3, symbols[0] + rest, symbols)


def connected(expressions: Iterable[sympy.Expr]) -> list[set[sympy.Symbol]]:
    """Return the symbols in sets: those that occur in one expression are in one set."""
    sets: list[set[sympy.Symbol]] = []
    for e in expressions:
        touching = [s for s in sets if s & e.free_symbols]
        sets = [s for s in sets if s not in touching] + [set(e.free_symbols).union(*touching)]
    return sets


def as_sums(members: dict[Axis, sympy.Expr]) -> dict[Axis, sympy.Expr]:
    """Return the same relations without differences: what was `sequence = mask - past` becomes `mask = past + sequence`."""
    for axis in list(members):
        e = members[axis]
        positive = [s for s in e.free_symbols if e.coeff(s) == 1]
        if not any(e.coeff(s) == -1 for s in e.free_symbols) or not positive:
            continue
        whole, part = positive[0], sympy.Symbol(f"part{axis[0]}_{axis[1]}")
        members = {a: sympy.expand(x.subs(whole, part - (e - whole))) for a, x in members.items()}
    return members


def spelled(expression: sympy.Expr, names: dict[sympy.Symbol, str]) -> str:
    """Return an expression as text over root names; ValueError for what sizes cannot say."""
    if expression.atoms(sympy.Function) or any(not n.is_Integer for n in expression.atoms(sympy.Number)):
        raise ValueError(expression)
    text = str(expression.xreplace({s: sympy.Symbol(n) for s, n in names.items()}))
    size_text.value(text, dict.fromkeys(names.values(), 1))
    return text
