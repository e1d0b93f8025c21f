"""A model in a `.pt2` file. To read one runs whatever code is in it, so it is read only where the user says that it may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from torchferry.errors import UsageError
from torchferry.records import Fault, Location, Step
from torchferry.records.findings import ModelNotLoaded, ProgramNotTrusted


def loaded(path: Path, *, trust: bool) -> Any:
    """Return the program in a file, or the answer of a stage that says why there is none.

    torch has no way to read one without code: example inputs and weights may be pickles, sizes are Python for sympy.
    """
    if path.suffix.lower() != ".pt2":
        raise UsageError(f"cannot take `{path}` as a model: give a module, or a file saved with torch.export.save (.pt2)")
    if not path.exists():
        raise UsageError(f"there is no file `{path}`")
    where = Location(file=str(path))
    if not trust:
        untrusted = ProgramNotTrusted(str(path), location=where)
        return Step("inputs", fault=Fault("ProgramNotTrusted", f"`{path}` holds code, and is not trusted"), findings=(untrusted,))
    try:
        return torch.export.load(path)
    except Exception as error:  # a damaged or foreign archive raises whatever its reader raises
        failed = ModelNotLoaded(str(path), type(error).__name__, str(error), location=where)
        return Step("inputs", fault=Fault.of(error), findings=(failed,))
