"""The sizes at which a model may change its mind: in guards, in its attributes and configs, in its source's `if`s, its tables.

And those at which a file from elsewhere may: where its slices end, what its sizes are compared with.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import onnx
import torch

from torchferry.records import Guard

MOST = 32  # marks tried; those from guards and comparisons come first
TALLEST = 4096  # rows of a table that may be a length
MOST_OF_A_FILE = 8
LONGEST = 1024  # a number of a file that may be a size worth the time
# operators to which a constant says how far to go
BOUNDED = frozenset({"Slice", "Range", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Mod", "TopK"})
_NAMES = (ast.Attribute, ast.Name)
_WORD = re.compile(r"(?<![\w.])\d+(?![\w.])")


def landmarks(module: torch.nn.Module, guards: Sequence[Guard] = ()) -> list[int]:
    """Return the integers found, most telling first, each once."""
    found: dict[int, None] = {}
    for source in (_in_guards(guards), _in_sources(module), _in_attributes(module), _in_tables(module)):
        for number in source:
            if 2 <= number <= 2**16:
                found.setdefault(number)
    return list(found)[:MOST]


def in_file(graph: onnx.GraphProto) -> list[int]:
    """Return the integers that bound sizes in a file: read by slices, ranges and comparisons, each once, in the file's order."""
    stored = {t.name: t for t in graph.initializer}
    stored |= {n.output[0]: a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
    read = [stored[i] for n in graph.node if n.op_type in BOUNDED for i in n.input if i in stored]
    small = [t for t in read if t.data_type in (t.INT32, t.INT64) and len(t.dims) < 2 and sum(t.dims) <= 8]
    found = dict.fromkeys(int(v) for t in small for v in onnx.numpy_helper.to_array(t).reshape(-1))
    return [v for v in found if 2 <= v <= LONGEST][:MOST_OF_A_FILE]


def handles_nan(module: torch.nn.Module) -> bool:
    """Return whether the user's source looks for NaN or infinity."""
    sources = (tree_of(cls) for cls in dict.fromkeys(type(m) for m in module.modules()) if written_by_users(cls))
    names = (n.attr if isinstance(n, ast.Attribute) else n.id for t in sources for n in ast.walk(t) if isinstance(n, _NAMES))
    return any(re.search(r"nan|isinf|isfinite", n) for n in names)


def _in_guards(guards: Sequence[Guard]) -> Iterator[int]:
    for guard in guards:
        yield from (int(n) for n in _WORD.findall(guard.text))


def _in_sources(module: torch.nn.Module) -> Iterator[int]:
    """Yield whole numbers in the methods that users wrote: those in comparisons first, then all others."""
    rest: list[int] = []
    for cls in dict.fromkeys(type(m) for m in module.modules()):
        if not written_by_users(cls):
            continue
        for node in ast.walk(tree_of(cls)):
            if isinstance(node, ast.Compare | ast.If | ast.IfExp):
                test = node if isinstance(node, ast.Compare) else node.test
                yield from _constants(test)
                rest += _reckoned(test)
            elif isinstance(node, ast.Call | ast.BinOp | ast.Subscript):
                rest += _constants(node)
    yield from rest


def written_by_users(cls: type) -> bool:
    """Return whether a class is neither torch's nor ours; the models of the catalogue stand for users' own."""
    return not cls.__module__.startswith("torch.") and not re.match(r"torchferry\.(?!catalogue|demo)", cls.__module__)


def _constants(node: ast.AST) -> list[int]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) is int]


def _reckoned(test: ast.AST) -> list[int]:
    """Return sizes at which a test with several numbers may turn: `n * 0.5 > 60` at 120, `n ** 0.5 > 8` at 64."""
    values = [n.value for n in ast.walk(test) if isinstance(n, ast.Constant)]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    numbers = [n for n in dict.fromkeys(numbers) if 1e-6 < abs(n) < 1e6][:4]
    found = [n for n in numbers if n != int(n)] + [n * n for n in numbers] + [math.sqrt(abs(n)) for n in numbers]
    for one, two in itertools.permutations(numbers, 2):
        found += [one / two, one * two, one + two, one - two]
        found += [one ** (1 / two)] if one > 0 and abs(two) >= 0.1 and abs(math.log(one) / two) < 20 else []
    return [round(n) for n in found if 2 <= n <= TALLEST]


def tree_of(cls: Any) -> ast.AST:
    """Return the syntax tree of a class, with the line numbers of its file; an empty one where there is no source."""
    return _parsed(cls)


@functools.lru_cache(256)
def _parsed(cls: Any) -> ast.AST:
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
            if type(value) in (int, float) and not torchs and math.isfinite(value):
                yield round(value)
            elif hasattr(value, "to_dict") and name == "config":
                yield from _in_config(value)
        if isinstance(part, torch.nn.Embedding):  # a table of positions ends somewhere
            yield part.num_embeddings


def _in_tables(module: torch.nn.Module) -> Iterator[int]:
    """Yield the lengths of buffers, which end masks and tables of positions, and of the user's own lists."""
    for part in module.modules():
        for buffer in part.buffers(recurse=False):
            yield from (int(n) for n in buffer.shape if 2 <= n <= TALLEST)
        if written_by_users(type(part)):
            for parameter in part.parameters(recurse=False):
                yield from (int(n) for n in parameter.shape[:-1] if 2 <= n <= TALLEST)
            lists = [v for name, v in vars(part).items() if not name.startswith("_") and isinstance(v, list | tuple | dict)]
            yield from (len(v) for v in lists)


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
