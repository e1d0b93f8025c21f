"""No file outside `foreign/` touches what torch, onnx, onnxscript, onnx_ir, transformers or onnxruntime keep private."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "torchferry"
FILES = [p for p in sorted(SOURCE.rglob("*.py")) if p.relative_to(SOURCE).parts[0] != "foreign"]
LIBRARIES = ("torch", "onnx", "onnxscript", "onnx_ir", "transformers", "onnxruntime")
UNSTABLE = re.compile(r"(torch\.fx\.experimental|onnxruntime\.capi)\b")  # private, though without an underscore
SIZES = ("expr", "hint", "shape_env", "maybe_as_int")  # of the node behind a symbolic size, likewise
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")

# What looks like a private name of theirs and is none.
# Python's own: the frame of a caller, the fields of a named tuple, the end of a process.
PYTHONS_OWN = ("_getframe", "_fields", "_exit")
# Operators are called by the names that torch gives them, `aten._to_copy` as well as `aten.to`: the door looks these up.
OPERATORS = ("aten", "torch.ops.aten")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_touches_no_private_name_of_another_package(path: Path) -> None:
    words_for_users = path.relative_to(SOURCE).parts[0] == "catalogue"  # who have to write `torch._higher_order_ops` themselves
    assert list(touched(path.read_text(encoding="utf-8"), told=words_for_users)) == []


@pytest.mark.parametrize(
    "code",
    [
        "import torch._dynamo",
        "from torch.utils import _pytree as trees",
        "from torch._ops import OpOverload",
        "from torch.fx.experimental.symbolic_shapes import ShapeEnv",
        "from onnxruntime.capi import onnxruntime_pybind11_state",
        "import torch\ntorch._check(True)",
        "import torch\ntorch.fx.experimental.proxy_tensor",
        "import torch\nkey = torch._C.DispatchKey.CPU",
        "schema = node.target._schema",
        "tables = self.owner._buffers",
        "class A(Base):\n    def f(self):\n        return self._modules",
        "class A(Base):\n    def f(self):\n        return super()._sample()",
        "getattr(program, '_guards_code', None)",
        "text = 'torch._higher_order_ops.scan(body)'",
        "logging.getLogger('torch.fx.experimental.symbolic_shapes')",
        "size.node.expr",
    ],
)
def test_what_is_private_is_noticed(code: str) -> None:
    assert list(touched(code))


@pytest.mark.parametrize(
    "code",
    [
        '"""Speaks of torch._dynamo."""',
        "table = {aten._to_copy.default: cast}",
        "sys._getframe(1)",
        "names = value._fields",
        "class A:\n    def _f(self):\n        return self._f()",
        "class A:\n    def __init__(self):\n        self._x = 1\n\n    def f(self):\n        return self._x",
        "value.__dict__",
    ],
)
def test_what_is_not_private_is_let_through(code: str) -> None:
    assert list(touched(code)) == []


def touched(code: str, *, told: bool = False) -> Iterator[str]:
    """Yield each private name of another package that a piece of code touches; `told`: its texts may speak of them."""
    tree = ast.parse(code)
    own, silent = _own_names(tree), _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if _is_private(a.name))
        elif isinstance(node, ast.ImportFrom):
            yield from (n for a in node.names if _is_private(n := f"{node.module}.{a.name}"))
        elif isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            if (_hidden(node.attr) and not _allowed(node, own)) or UNSTABLE.search(text) or _of_size(node):
                yield text
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else ""
            if _hidden(str(name)) and name not in PYTHONS_OWN:
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent and not told:
            yield from (name for name in re.findall(r"\b[a-z_]+(?:\.\w+)+", node.value) if _is_private(name))


def _is_private(name: str) -> bool:
    first, *rest = name.split(".")
    return first in LIBRARIES and (any(map(_hidden, rest)) or bool(UNSTABLE.match(name)))


def _hidden(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _allowed(node: ast.Attribute, own: set[str]) -> bool:
    owner = ast.unparse(node.value)
    return node.attr in PYTHONS_OWN or owner in OPERATORS or (owner in ("self", "cls") and node.attr in own)


def _of_size(node: ast.Attribute) -> bool:
    return node.attr in SIZES and isinstance(node.value, ast.Attribute) and node.value.attr == "node"


def _own_names(tree: ast.Module) -> set[str]:
    """Return the private names that the file's own classes define: methods, and attributes of `self` or the class."""
    nodes = list(ast.walk(tree))
    methods = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    assigned = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    return methods | assigned | {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
