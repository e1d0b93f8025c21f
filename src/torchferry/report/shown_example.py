"""An example of the catalogue as a user writes it: `torchferry.export`, `verify` or `check` in the place of the Job that is run.

A test runs each of these scripts up to the pipeline, and compares the Job that arrives there with the example's own.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

RENAMED = {"opset": "opset_version"}
FIELDS = ("model", "args", "kwargs")  # of a Job, in their order
FILE = '"model.onnx"'
WRITTEN_OUT = {"example_file": f"Path({FILE})", "example_folder": "Path()"}
IMPORTED = {"Path(": "from pathlib import Path", "onnx.": "import onnx", "torchferry.": "import torchferry"}


def shown(example: Callable[[], Any]) -> str:
    """Return an example as a page shows it: by its module's own words (`SHOWN`) where no single call is it, else as a script."""
    told: dict[str, str] = getattr(sys.modules[example.__module__], "SHOWN", {})
    return told.get(example.__name__) or f"```python\n{script(example)}\n```"


def script(example: Callable[[], Any]) -> str:
    """Return an example as a script, with what it takes from its module."""
    page = _Page(sys.modules[example.__module__])
    body, needed = page.body(example.__name__), "\n\n".join(page.needed(example.__name__))
    lines = body.split("\n")
    first = next(n for n, line in enumerate(lines) if line and not line.startswith(("import ", "from ")))
    rest = "\n".join(lines[first:])
    ours = [line for word, line in IMPORTED.items() if word in needed + rest]
    imports = "\n".join(dict.fromkeys(line for line in [*lines[:first], *ours] if line))
    told = inspect.getdoc(example)
    comment = textwrap.indent(told, "# ", lambda line: True) if told else ""
    return re.sub(r"  # noqa.*", "", "\n\n".join(part for part in (comment, imports, needed, rest) if part))


class _Page:
    """A module of the catalogue, with the public call in the place of each Job."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.source = module, inspect.getsource(module).encode()
        self.starts = [0]
        for line in self.source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.top: dict[str, ast.stmt] = {}
        for node in ast.parse(self.source).body:
            if isinstance(node, ast.FunctionDef):
                self.top[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.top[node.targets[0].id] = node

    def body(self, name: str) -> str:
        """Return what a function does, as statements of a script."""
        function = self.top[name]
        assert isinstance(function, ast.FunctionDef)
        told = ast.get_docstring(function) is not None
        statements = function.body[told:]
        edits = list(self._edits(statements))
        edits += [(self._start(s), self._start(s.value), "") for s in statements if isinstance(s, ast.Return) and s.value]
        begin = self.starts[statements[0].lineno - 1]
        return textwrap.dedent(self._text(begin, self._end(statements[-1]), edits)).strip()

    def needed(self, name: str) -> Iterator[str]:
        """Yield what stands in the module, or in the catalogue, and is used by a function, whatever it needs itself first."""
        yield from self._needed(self.top[name], {name})

    def _needed(self, node: ast.stmt, seen: set[str]) -> Iterator[str]:
        for used in [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]:
            if used in seen or used in dir(builtins):
                continue
            seen.add(used)
            if used in self.top:
                yield from self._needed(self.top[used], seen)
                yield self.piece(self.top[used])
            elif used in vars(self.module) and used not in (*WRITTEN_OUT, "Job"):
                yield _brought(used, vars(self.module)[used])

    def piece(self, node: ast.stmt) -> str:
        """Return a function or a constant as it is shown."""
        edits = list(self._edits([node]))
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "Job":
            edits.append((self._start(node.returns), self._end(node.returns), "torchferry.Result"))
        return self._text(self._start(node), self._end(node), edits)

    def _edits(self, statements: list[ast.stmt]) -> Iterator[tuple[int, int, str]]:
        """Yield what is to be written in other words: (from, to, the words)."""
        for statement in statements:
            calls = [(n, n.func.id) for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
            in_job = {id(k.value) for call, name in calls if name == "Job" for k in call.keywords}
            for call, name in calls:
                if name == "example_file":
                    yield self._saved(call, statement)
                if name == "Job":
                    yield self._start(call), self._end(call), self._public(call)
                elif name in WRITTEN_OUT and id(call) not in in_job:
                    yield self._start(call), self._end(call), WRITTEN_OUT[name]

    def _saved(self, call: ast.Call, statement: ast.stmt) -> tuple[int, int, str]:
        """Return the line that writes a file given in onnx's text form, before the statement that uses it."""
        inner = next((s for s in ast.walk(statement) if isinstance(s, ast.stmt) and s.lineno == call.lineno), statement)
        start = self.starts[inner.lineno - 1]
        saved = f"onnx.save(onnx.parser.parse_model({self._of(call.args[0])}), {self._file(call)})"
        return start, start, " " * inner.col_offset + saved + "\n"

    def _file(self, node: ast.Call) -> str:
        return self._of(node.args[1]) if len(node.args) > 1 else FILE

    def _public(self, job: ast.Call) -> str:
        """Return the call of the public API that makes this Job."""
        given = {**dict(zip(FIELDS, job.args, strict=False)), **{str(k.arg): k.value for k in job.keywords}}
        model, args, file = (given.pop(n, None) for n in ("model", "args", "onnx"))
        feeds = given.pop("feeds", None)
        match file:
            case ast.Call(func=ast.Name(id="example_file")):
                path = self._file(file)
            case _:
                path = self._of(file) if file is not None else ""
        mends = given.pop("edits", None) if model is None else None  # which `check` chooses itself
        if model is None:
            fed = [feeds.elts[0] if isinstance(feeds, ast.Tuple) and len(feeds.elts) == 1 else feeds] if feeds is not None else []
            words = ["torchferry.check", path, *(self._of(f) for f in fed)]
        elif file is None:
            words = ["torchferry.export", self._of(model), self._of(args) if args is not None else "()", FILE]
        else:
            words = ["torchferry.verify", self._of(model), path, *([self._of(args)] if args is not None else [])]
        words += [f"{RENAMED.get(name, name)}={self._of(value)}" for name, value in given.items()]
        after = f"  # after the mend {self._of(mends)}" if mends is not None else ""
        return f"{words[0]}({', '.join(words[1:])}){after}"

    def _of(self, node: ast.expr) -> str:
        return self.source[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.stmt | ast.expr) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.stmt | ast.expr) -> int:
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _text(self, begin: int, end: int, edits: list[tuple[int, int, str]]) -> str:
        made, at = b"", begin
        for start, stop, words in sorted(edits, key=lambda e: e[:2]):
            made, at = made + self.source[at:start] + words.encode(), stop
        return (made + self.source[at:end]).decode()


def _brought(name: str, value: Any) -> str:
    """Return the line that imports something; the source of what the catalogue's examples share."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
    if not value.__module__.startswith("torchferry.catalogue."):
        return f"from {value.__module__} import {name}"
    shared = _Page(sys.modules[value.__module__])
    return shared.piece(shared.top[name])
