"""`self.calls += 1`, `self.attention = weights`: kept for whoever looks at the model later, left out of loops and branches.

Precondition: nothing that is computed reads them. `capture/unchanged.py` shows it by running the model without them, and refuses
the rewrite where that differs in a bit.
"""

from __future__ import annotations

import ast
from typing import Any

from torchferry.capture.rewrites import functions
from torchferry.capture.rewrites.blocks import places
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode
from torchferry.foreign import python_bytecode
from torchferry.foreign.torch_messages import changed_attribute
from torchferry.records import Fault, Location


def stopped_at(fault: Fault, module: Any) -> Location | None:
    """Return the line that sets the attribute which torch found changed inside a loop or a branch; None if that is not it."""
    name = next((n for link in fault.chain() if (n := changed_attribute(link.text))), None)
    if name is None:
        return None
    for function in functions.reachable(module):
        code = function.__code__
        for step, line in python_bytecode.steps(code):
            if step.opname == "STORE_ATTR" and step.argval == name and function.__name__ != "__init__":
                return Location(file=code.co_filename, line=line)
    return None


def suits(statement: ast.stmt) -> bool:
    """Say whether a statement sets an attribute, or adds to a list that is one."""
    return bool(_attributes(statement))


def rewrite(function: FunctionNode, line: int) -> None:
    """Leave out what sets, anywhere in a function, the attributes that a line sets."""
    wanted = {a for p in places(function.body) if p.statement.lineno == line for a in _attributes(p.statement)}
    if not wanted:
        raise CannotRewrite(f"line {line} sets no attribute")
    for place in list(places(function.body)):
        if set(_attributes(place.statement)) & wanted:
            place.replace([ast.copy_location(_without(place.statement, wanted), place.statement)])


def _attributes(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr="append" | "extend"))):
            return [name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [t.attr for t in targets if isinstance(t, ast.Attribute)]


def _without(statement: ast.stmt, wanted: set[str]) -> ast.stmt:
    if not isinstance(statement, ast.Assign):
        return ast.Pass()
    statement.targets = [t for t in statement.targets if not (isinstance(t, ast.Attribute) and t.attr in wanted)]
    return statement if statement.targets else ast.Expr(statement.value)
