"""The condition of a branch or loop as an expression on tensors, and how much of it is plain Python."""

from __future__ import annotations

import ast
import copy

_STATIC_CALLS = {"isinstance", "hasattr", "callable", "issubclass", "len"}
_BOOLEAN_METHODS = {
    "any", "all", "logical_and", "logical_or", "logical_not", "isnan", "equal", "allclose", "is_nonzero", "lt", "gt", "le",
    "ge", "eq", "ne",
}  # fmt: skip


def is_static(test: ast.expr) -> bool:
    """Say whether a condition is on Python's own values by the look of it: `is None`, isinstance, flags, constants."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.UnaryOp):
        return is_static(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(is_static(v) for v in test.values)
    if isinstance(test, ast.Attribute):
        return isinstance(test.value, ast.Name) and test.value.id in ("self", "cls")
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id in _STATIC_CALLS
    if isinstance(test, ast.Compare):
        return any(isinstance(o, ast.Is | ast.IsNot) for o in test.ops) or all(
            is_static(v) for v in (test.left, *test.comparators)
        )
    return False


def is_emptiness(test: ast.expr) -> bool:
    """Say whether a condition asks, by the look of it, if a tensor has no elements: `i.numel() == 0`, `not len(i)`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_size(test.operand)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not _is_size(test.left):
        return False
    limit = test.comparators[0]
    wanted = {ast.Eq: 0, ast.LtE: 0, ast.Lt: 1}.get(type(test.ops[0]))
    return isinstance(limit, ast.Constant) and type(limit.value) is int and limit.value == wanted


def _is_size(value: ast.expr) -> bool:
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute):
        return value.func.attr in ("numel", "nelement", "size")
    return isinstance(value.func, ast.Name) and value.func.id == "len"


def from_value(expression: ast.expr, function: ast.AST) -> bool:
    """Say whether an expression, by the look of it, holds a number read from a tensor: `int(n)`, `n.item()`, or a name for it."""
    names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    named = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and names & {ast.unparse(t) for t in n.targets}]
    return any(reads_number(n) for part in (expression, *named) for n in ast.walk(part))


def reads_number(node: ast.AST) -> bool:
    """Say whether code is `int(x)`, `x.item()` or `x.tolist()`."""
    if not isinstance(node, ast.Call):
        return False
    return (isinstance(node.func, ast.Name) and node.func.id == "int") or (
        isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist")
    )


def split(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.If | None:
    """Return an `if` on the Python part of a condition around one on its tensor part, or None when there is only one part.

    `if mask is not None and mask.all()` must not look at the mask when there is none.
    """
    if not isinstance(test, ast.BoolOp) or not is_static(test.values[0]) or is_static(test):
        return None
    first, later = test.values[0], test.values[1:]
    rest = later[0] if len(later) == 1 else ast.BoolOp(test.op, later)
    inner = ast.copy_location(ast.If(ast.copy_location(rest, test), copy.deepcopy(body), copy.deepcopy(orelse)), test)
    if isinstance(test.op, ast.And):
        return ast.copy_location(ast.If(first, [inner], copy.deepcopy(orelse)), test)
    return ast.copy_location(ast.If(first, copy.deepcopy(body), [inner]), test)


def as_tensor(test: ast.expr) -> ast.expr:
    """Return a condition as one boolean tensor: `a and not b` as torch.logical_and(a, torch.logical_not(b))."""
    if isinstance(test, ast.BoolOp):
        name = "logical_and" if isinstance(test.op, ast.And) else "logical_or"
        result = as_tensor(test.values[0])
        for value in test.values[1:]:
            result = _torch(name, result, as_tensor(value))
        return result
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _torch("logical_not", as_tensor(test.operand))
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        parts, left = [], test.left
        for op, right in zip(test.ops, test.comparators, strict=True):
            parts.append(ast.Compare(copy.deepcopy(left), [op], [right]))
            left = right
        return as_tensor(ast.BoolOp(ast.And(), list(parts)))
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "bool" and len(test.args) == 1:
        return as_tensor(test.args[0])
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "item" and not test.args:
        return as_tensor(test.func.value)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _BOOLEAN_METHODS:
        return _looking(test, test.func.attr)
    if isinstance(test, ast.Compare):
        return _single(_torch("as_tensor", _unitemed(test)))
    return ast.Compare(_single(_torch("as_tensor", test)), [ast.NotEq()], [ast.Constant(0)])


def _looking(call: ast.Call, name: str) -> ast.expr:
    """Return a call that is a condition as a boolean scalar; torch.equal and its like give a number, which a loop has not."""
    given = call.args if ast.unparse(call.func) == f"torch.{name}" else [call.func.value, *call.args]  # type: ignore[attr-defined]
    one = [ast.unparse(a) for a in given]
    more = "".join(f", {ast.unparse(k)}" for k in call.keywords)
    if name == "equal" and len(one) == 2:
        code = f"({one[0]} == {one[1]}).all() if {one[0]}.shape == {one[1]}.shape else torch.tensor(False)"
        return ast.parse(code, mode="eval").body
    if name == "allclose":
        return ast.parse(f"torch.isclose({', '.join(one)}{more}).all()", mode="eval").body
    if name in ("any", "all") and "byte" not in ast.unparse(call) and "uint8" not in ast.unparse(call):
        return call  # of bytes they would be a byte
    if name in ("any", "all", "is_nonzero"):
        return ast.Compare(_single(call if name != "is_nonzero" else given[0]), [ast.NotEq()], [ast.Constant(0)])
    return call


def _single(value: ast.expr) -> ast.expr:
    # Python takes a tensor of one element for a condition, whatever its rank; a graph wants a scalar
    return ast.Call(ast.Attribute(value, "reshape", ast.Load()), [ast.Tuple([], ast.Load())], [])


def _unitemed(test: ast.Compare) -> ast.Compare:
    """`x.max().item() > 3` compares just as well without leaving the tensor."""

    def bare(value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "item" and not value.args:
            return value.func.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "float" and len(value.args) == 1:
            return value.args[0]
        return value

    return ast.copy_location(ast.Compare(bare(test.left), test.ops, [bare(c) for c in test.comparators]), test)


def _torch(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load()), list(arguments), [])
