"""Whether the name of a model makes sense, as far as can be told without loading anything."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

from torchferry.errors import UsageError, did_you_mean

PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def sensible(model: str) -> None:
    """Raise UsageError for a name that cannot be a model's, with what to write instead."""
    if model.startswith("hf:"):
        return
    file, colon, name = split(model)
    suffix = Path(file).suffix.lower()
    if suffix in PICKLES:
        raise UsageError(_pickle(file))
    if suffix == ".safetensors":
        raise UsageError(f"`{file}` holds weights without a model; name a function that builds it and loads them: file.py:name")
    if suffix == ".onnx":
        raise UsageError(f"`{file}` is an ONNX file already; `torchferry check {file}` looks at it")
    if suffix == ".pt2":
        _exists(file)
        return
    if suffix == ".py":
        _exists(file)
        _names_something(file, name if colon else "")
        return
    if Path(file).is_dir() and (Path(file) / "config.json").is_file():
        raise UsageError(f"`{file}` is a directory; if it holds a transformers model, write `hf:{file}`")
    if not colon or not name:
        raise UsageError(f"`{model}` does not name a model; write package.module:name, file.py:name, program.pt2 or hf:DIRECTORY")
    _is_installed(file)


def split(model: str) -> tuple[str, str, str]:
    """Return what stands before the last colon, the colon, and what stands after; a colon within a path does not count."""
    file, colon, name = model.rpartition(":")
    return (file, colon, name) if colon and "/" not in name and "\\" not in name else (model, "", "")


def _exists(file: str) -> None:
    if not Path(file).is_file():
        near = did_you_mean(Path(file).name, [p.name for p in Path(file).parent.glob("*")] if Path(file).parent.is_dir() else [])
        raise UsageError(f"there is no file `{file}`{near}")


def _names_something(file: str, name: str) -> None:
    """Raise UsageError unless the file seems to define the name; only its text is read."""
    if not name:
        ideas = ", ".join(f"`{file}:{n}`" for n in _defined(file)[:4])
        raise UsageError(f"say what to take from `{file}`: {ideas or f'`{file}:name`'}")
    text = Path(file).read_text(encoding="utf-8", errors="replace")
    first = name.split(".", maxsplit=1)[0]
    if re.search(rf"\b{re.escape(first)}\b|import \*|globals|setattr|__getattr__|exec", text) is None:
        raise UsageError(f"`{file}` has no `{first}`{did_you_mean(first, _defined(file))}")


def _is_installed(module: str) -> None:
    """Raise UsageError unless the package that a module is in can be found; nothing of it is imported."""
    package = module.split(".", maxsplit=1)[0]
    here = Path(package).is_dir() or Path(f"{package}.py").is_file()
    try:
        found = here or package in sys.modules or importlib.util.find_spec(package) is not None
    except ValueError:  # what has that name is no module that could be found
        found = False
    if not found:
        raise UsageError(f"there is no module `{package}` here; for a file, write path/to/file.py:name")


def _defined(file: str) -> list[str]:
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []  # importing it will say what is wrong, and where
    factories = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and len(n.args.args) == len(n.args.defaults)]
    classes = [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
    values = [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    return [n for n in factories + classes + values if not n.startswith("_")]


def _pickle(file: str) -> str:
    return (
        f"`{file}` is a pickle, and opening a pickle runs whatever code is in it, so torchferry never does.\n"
        f"Write a file that builds the model and loads the weights alone, say build.py:\n"
        f"    def model():\n"
        f"        net = MyModel()\n"
        f'        net.load_state_dict(torch.load("{file}", weights_only=True))\n'
        f"        return net.eval(), (example_input,)\n"
        f"then: torchferry export build.py:model"
    )
