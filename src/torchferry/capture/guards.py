"""The conditions under which a captured program is valid, in the user's dim names and at the user's lines."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from traceback import FrameSummary
from typing import Any

import sympy

from torchferry.capture import source_map
from torchferry.foreign.torch_export import guards_of, shape_env_of
from torchferry.foreign.torch_shapes import recorded, sources_of
from torchferry.guards import holds, symbols
from torchferry.records import Bound, Dim, Frame, Guard, Location, Signature
from torchferry.records.findings import GuardNarrows

_SIZE = re.compile(r"L\['(\w+)'\]\.size\(\)\[(\d+)\]")
_FAR = 4096  # stands for "as large as you like" when a condition is tried on a dim without an upper end


def read(program: Any, bound: Bound) -> tuple[Guard, ...]:
    """Return the guards of a program, before decomposition takes them away."""
    env = shape_env_of(program)
    guards: dict[str, Guard] = {}
    for code in guards_of(program):
        text = translate(code, bound)
        if text is not None and symbols(text):
            guards.setdefault(text, Guard(text, _origin(text, env, bound)))
    return tuple(guards.values())


def narrowing(guards: tuple[Guard, ...], signature: Signature) -> Iterator[GuardNarrows]:
    """Yield a finding for each guard that does not hold everywhere in the declared ranges, with a size where it does not."""
    for guard in guards:
        witness = counterexample(guard.text, signature)
        if witness is not None:
            yield GuardNarrows(guard.text, witness, location=guard.location)


def counterexample(text: str, signature: Signature) -> dict[str, int] | None:
    """Return sizes within the declared ranges at which a condition does not hold, or None if none was found."""
    names = sorted(symbols(text))
    dims = [signature.dim(name) or Dim(name) for name in names]
    numbers = {int(n) for n in re.findall(r"\b\d+\b", text) if int(n) < 10**6}
    for point in itertools.islice(itertools.product(*(points(d, numbers) for d in dims)), 4000):
        sizes = dict(zip(names, point, strict=True))
        if holds(text, sizes) is False:
            return sizes
    return None


def points(dim: Dim, numbers: set[int]) -> list[int]:
    """Return the sizes of a dim worth trying: small ones, those around the numbers in the condition, and the far end."""
    high = dim.high if dim.high is not None else _FAR
    near = {n + k for n in numbers for k in (-1, 0, 1)} | {n * k for n in numbers for k in (2, 3)}
    wanted = {*range(dim.low, dim.low + 9), *near, high, high - 1, (dim.low + high) // 2}
    return sorted(n for n in wanted if dim.low <= n <= high and n % dim.multiple_of == 0)


def translate(code: str, bound: Bound) -> str | None:
    """Return a guard of torch (`L['x'].size()[1] > 8`) as a condition on the user's dims, or None if it is on no dim."""
    names = list(inspect.signature(bound.module.forward).parameters)

    def size(match: re.Match[str]) -> str:
        index, axis = names.index(match[1]), int(match[2])
        return f"({bound.signature.inputs[index].shape[axis]})"

    try:
        tree = ast.parse(_SIZE.sub(size, code), mode="eval")
        return ast.unparse(_Spelled().visit(tree))
    except (ValueError, SyntaxError, IndexError):
        return None


class _Spelled(ast.NodeTransformer):
    """Spells a guard of torch as sympy and `torchferry.guards` read it; ValueError for what neither knows."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("sym_float", "sym_int", "float", "int", "ToFloat"):
            return node.args[0]
        known = {
            "trunc": "floor",
            "floor": "floor",
            "ceil": "ceiling",
            "sqrt": "sqrt",
            "sym_sqrt": "sqrt",
            "max": "Max",
            "min": "Min",
        }
        if name not in known:
            raise ValueError(name)
        return ast.Call(ast.Name(known[name], ast.Load()), node.args, [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv):
            return ast.Call(ast.Name("floor", ast.Load()), [ast.BinOp(node.left, ast.Div(), node.right)], [])
        if isinstance(node.op, ast.Mod):
            return ast.Call(ast.Name("Mod", ast.Load()), [node.left, node.right], [])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            name = "Eq" if isinstance(node.ops[0], ast.Eq) else "Ne"
            return ast.Call(ast.Name(name, ast.Load()), [node.left, node.comparators[0]], [])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(ast.Name("And" if isinstance(node.op, ast.And) else "Or", ast.Load()), node.values, [])


def _origin(text: str, env: Any, bound: Bound) -> Location | None:
    """Return the line that made a guard: that of torch's record with the same meaning at sizes around the example's."""
    same = [g for g in recorded(env) if _symbol_names(g.expression, env, bound) == symbols(text)]
    exact = [g for g in same if _same_meaning(g.expression, text, env, bound)]
    return next((place for g in (*exact, *same) if (place := _place(g.place)) is not None), None)


def _symbol_names(expr: Any, env: Any, bound: Bound) -> frozenset[str]:
    return frozenset().union(
        *(symbols(str(d)) for s in expr.free_symbols if (d := _dim_of(s, env, bound)) is not None), frozenset()
    )


def _dim_of(symbol: Any, env: Any, bound: Bound) -> str | None:
    return next((text for source in sources_of(env, symbol) if (text := translate(source, bound)) is not None), None)


def _same_meaning(expr: Any, text: str, env: Any, bound: Bound) -> bool:
    names = {s: _dim_of(s, env, bound) for s in expr.free_symbols}
    if not names or any(n is None or not n.isidentifier() for n in names.values()):
        return False
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 16, 17, 31, 32, 33, 64, 100):
        sizes = {str(n): size for n in names.values()}
        try:
            theirs: bool | None = bool(expr.xreplace({s: sympy.Integer(size) for s in names}))
        except (TypeError, AttributeError):
            return False
        except ZeroDivisionError:  # a divisor such as `n // 2` is 0 here: the condition has no value, as `holds` says
            theirs = None
        if theirs != holds(text, sizes):
            return False
    return True


def _place(where: FrameSummary | None) -> Location | None:
    frame = source_map.nearest([Frame(where.filename, where.lineno or 0, where.name)]) if where is not None else None
    return Location(file=frame.file, line=frame.line) if frame else None
