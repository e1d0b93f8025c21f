"""The integers at which a model may change its mind: in guards, in its attributes and configs, in its source's `if`s.

And those at which a file from elsewhere may: where its slices end, what its sizes are compared with.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from torchferry.records import Guard

MOST = 24  # marks tried; those from guards and comparisons come first
MOST_OF_A_FILE = 8
LONGEST = 1024  # a number of a file that may be a size worth the time
# operators to which a constant says how far to go
BOUNDED = frozenset({"Slice", "Range", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Mod", "TopK"})
_WORD = re.compile(r"(?<![\w.])\d+(?![\w.])")


def landmarks(module: torch.nn.Module, guards: Sequence[Guard] = ()) -> list[int]:
    """Return the integers found, most telling first, each once."""
    found: dict[int, None] = {}
    for source in (_in_guards(guards), _in_sources(module), _in_attributes(module)):
        for number in source:
            if 2 <= number <= 2**16:
                found.setdefault(number)
    return list(found)[:MOST]


def in_file(path: Path) -> list[int]:
    """Return the integers that bound sizes in a file: read by slices, ranges and comparisons, each once, in the file's order."""
    model = onnx.load(str(path), load_external_data=False)
    stored = {t.name: t for t in model.graph.initializer}
    stored |= {n.output[0]: a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
    read = [stored[i] for n in model.graph.node if n.op_type in BOUNDED for i in n.input if i in stored]
    small = [t for t in read if t.data_type in (t.INT32, t.INT64) and len(t.dims) < 2 and sum(t.dims) <= 8]
    found = dict.fromkeys(int(v) for t in small for v in onnx.numpy_helper.to_array(t).reshape(-1))
    return [v for v in found if 2 <= v <= LONGEST][:MOST_OF_A_FILE]


def _in_guards(guards: Sequence[Guard]) -> Iterator[int]:
    for guard in guards:
        yield from (int(n) for n in _WORD.findall(guard.text))


def _in_sources(module: torch.nn.Module) -> Iterator[int]:
    """Yield whole numbers in the methods that users wrote: those in comparisons first, then all others."""
    rest: list[int] = []
    for cls in {type(m) for m in module.modules()}:
        if cls.__module__.startswith(("torch.", "torchferry.")):
            continue
        for node in ast.walk(tree_of(cls)):
            if isinstance(node, ast.Compare | ast.If | ast.IfExp):
                test = node if isinstance(node, ast.Compare) else node.test
                yield from _constants(test)
            elif isinstance(node, ast.Call | ast.BinOp | ast.Subscript):
                rest += _constants(node)
    yield from rest


def _constants(node: ast.AST) -> list[int]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) is int]


def tree_of(cls: type) -> ast.AST:
    """Return the syntax tree of a class, with the line numbers of its file; an empty one where there is no source."""
    try:
        lines, start = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return ast.Module(body=[], type_ignores=[])
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])
    return ast.increment_lineno(tree, start - 1)


def _in_attributes(module: torch.nn.Module) -> Iterator[int]:
    for part in module.modules():
        torchs = type(part).__module__.startswith("torch.")
        for name, value in vars(part).items():
            if name.startswith("_"):
                continue
            if type(value) is int and not torchs:
                yield value
            elif hasattr(value, "to_dict") and name == "config":
                yield from _in_config(value)
        if isinstance(part, torch.nn.Embedding):  # a table of positions ends somewhere
            yield part.num_embeddings


def _in_config(config: Any) -> Iterator[int]:
    for name, value in vars(config).items():
        if type(value) is int and any(w in name for w in ("position", "window", "stride", "length", "chunk", "block", "len")):
            yield value


def source_file(cls: type) -> str | None:
    """Return the file that a class was written in, or None."""
    try:
        return inspect.getsourcefile(cls)
    except TypeError:
        return None
