"""The slices that a loop goes over, one a step: `x`, `x.unbind(1)`, `torch.split(x, 1, dim=1)`, `x.chunk(x.size(1), 1)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchferry.capture.rewrites.syntax_tree import CannotRewrite

_ORDER = {
    "unbind": ("input", "dim"),
    "split": ("input", "split_size_or_sections", "dim"),
    "tensor_split": ("input", "indices_or_sections", "dim"),
    "chunk": ("input", "chunks", "dim"),
}
_SAME = ("tolist", "cpu", "detach", "numpy", "contiguous")  # the same numbers, of which a step takes one
_SPELLINGS = {"tensor": "input", "axis": "dim", "split_size": "split_size_or_sections", "sections": "indices_or_sections"}


@dataclass(frozen=True, slots=True)
class Along:
    """A tensor, the axis that is gone along, and whether a slice keeps that axis with the size 1."""

    tensor: str
    axis: int
    keeps: bool = False

    def at(self, index: str) -> str:
        """Return the slice of a step as an expression that reads no value."""
        taken = f"{self.tensor}.index_select({self.axis}, {index}.reshape(1))"
        return taken if self.keeps else f"{taken}.squeeze({self.axis})"


def taken_apart(node: ast.expr) -> Along:
    """Return how an expression that a loop goes over takes a tensor apart; CannotRewrite where it may not be by ones."""
    if isinstance(node, ast.Name | ast.Attribute):
        return Along(ast.unparse(node), 0)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "iter") and len(node.args) == 1:
        return taken_apart(node.args[0])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME and not node.args:
        return taken_apart(node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ORDER:
        return _by_ones(node, node.func)
    if isinstance(node, ast.Call | ast.Subscript):
        return Along(f"({ast.unparse(node)})", 0)
    raise CannotRewrite(f"it goes over `{ast.unparse(node)}`")


def reads_numbers(node: ast.expr) -> bool:
    """Say whether a loop goes over the numbers in a tensor: `lengths.tolist()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"


def _by_ones(call: ast.Call, function: ast.Attribute) -> Along:
    kind = function.attr
    given = list(call.args)
    if not (isinstance(function.value, ast.Name) and function.value.id == "torch"):
        given.insert(0, function.value)
    named = dict(zip(_ORDER[kind], given, strict=False))
    named |= {_SPELLINGS.get(str(k.arg), str(k.arg)): k.value for k in call.keywords}
    tensor, axis = ast.unparse(named["input"]), named.get("dim", ast.Constant(0))
    tensor = tensor if isinstance(named["input"], ast.Name | ast.Attribute) else f"({tensor})"
    try:
        number = int(ast.literal_eval(axis))
    except ValueError as error:
        raise CannotRewrite(f"its axis is `{ast.unparse(axis)}`") from error
    if kind == "split" and ast.unparse(named["split_size_or_sections"]) != "1":
        raise CannotRewrite("its pieces are not of size 1")
    if kind in ("chunk", "tensor_split") and isinstance(named[_ORDER[kind][1]], ast.Constant | ast.List | ast.Tuple):
        raise CannotRewrite("the number of its pieces is fixed")  # by a size: verification sees whether it was the axis's own
    return Along(tensor, number, keeps=kind != "unbind")
