"""`torch.tensor([n] * batch)`: a list as long as a size that moves, as a tensor filled with the number."""

from __future__ import annotations

import ast

from torchferry.capture.rewrites import names
from torchferry.capture.rewrites.blocks import find
from torchferry.capture.rewrites.syntax_tree import FunctionNode

_DTYPES = {
    "LongTensor": "torch.int64",
    "IntTensor": "torch.int32",
    "FloatTensor": "torch.float32",
    "DoubleTensor": "torch.float64",
    "BoolTensor": "torch.bool",
}


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement repeats one element as often as something other than a written number says."""
    return any(_repeated(n) for n in ast.walk(statement))


def rewrite(function: FunctionNode, line: int) -> None:
    """Rewrite the repeated lists on a line, and the calls that make tensors of them."""
    place = find(function, line, lambda s: suits(s) and not hasattr(s, "body"))
    place.replace([_Filled().visit(place.statement)])


def _repeated(node: ast.AST) -> tuple[str, str] | None:
    """Return the element and the number of `[n] * batch`, `batch * [n]` and `[n for _ in range(batch)]`."""
    match node:
        case ast.BinOp(left=ast.List(elts=[element]), op=ast.Mult(), right=count):
            pass
        case ast.BinOp(left=count, op=ast.Mult(), right=ast.List(elts=[element])):
            pass
        case ast.ListComp(
            elt=element,
            generators=[
                ast.comprehension(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[count]), ifs=[])
            ],
        ) if name not in names.loaded([element]):
            pass
        case _:
            return None
    fixed = isinstance(count, ast.Constant) or isinstance(element, ast.List | ast.Tuple | ast.Starred)
    return None if fixed else (ast.unparse(element), ast.unparse(count))


class _Filled(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        kind = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        pair = _repeated(node.args[0]) if node.args else None
        if pair is None or kind not in ("tensor", "as_tensor", *_DTYPES):
            return self.generic_visit(node)
        keywords = [ast.unparse(k) for k in node.keywords]
        keywords += [f"dtype={_DTYPES[kind]}"] if kind in _DTYPES else []
        return self._full(pair, node, *keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        pair = _repeated(node)
        return self.generic_visit(node) if pair is None else self._full(pair, node)

    def _full(self, pair: tuple[str, str], node: ast.expr, *keywords: str) -> ast.expr:
        code = ", ".join([f"({pair[1]},)", pair[0], *keywords])
        return ast.copy_location(ast.parse(f"torch.full({code})", mode="eval").body, node)
