"""The parts of an installation: `pip install torchferry` brings what every command needs, each extra the rest of some of them.

No extra but its own brings onnxruntime: its flavours (`onnxruntime-gpu`, `-directml`, `-openvino`) overwrite each other's files,
so which of them is there is the user's choice.
"""

from __future__ import annotations

from importlib.util import find_spec

from torchferry.errors import MissingDependency

# the extra that brings a package
BRINGS = {
    "torch": "export",
    "onnxscript": "export",
    "sympy": "export",
    "transformers": "transformers",
    "safetensors": "transformers",
    "tokenizers": "generation",
    "onnxruntime": "onnxruntime",
}


def require(what: str, *packages: str) -> None:
    """Raise MissingDependency, with the command that installs it, unless all packages are there. Imports none of them."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingDependency(words(package, what))


def words(package: str, what: str) -> str:
    """Return that a package is missing, and how to install it."""
    flavours = ", or a flavour of your own such as `pip install onnxruntime-gpu`" if package == "onnxruntime" else ""
    return f"{what} needs {package}, which is not installed: `pip install 'torchferry[{BRINGS[package]}]'`{flavours}"


def missing(error: BaseException) -> str:
    """Return in words which part of the installation an import error misses; nothing where it is about something else."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return words(package, "this command") if package in BRINGS else ""
