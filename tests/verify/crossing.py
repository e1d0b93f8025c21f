"""A model, a file made from it by the old exporter of torch.onnx (quick, and wrong in known ways), and torchferry's verdict."""

from __future__ import annotations

import inspect
import linecache
import warnings
from pathlib import Path
from typing import Any

import torch

from torchferry.api import verify
from torchferry.records import Budget
from torchferry.result import Result


def stock(model: torch.nn.Module, args: tuple[Any, ...], path: Path, axes: dict[str, dict[int, str]] | None = None) -> Path:
    """Return the path of a file that torch.onnx made."""
    names = list(inspect.signature(model.forward).parameters)[: len(args)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, args, str(path), dynamo=False, input_names=names, dynamic_axes=axes)
    return path


def verdict(model: torch.nn.Module, args: tuple[Any, ...], path: Path, **options: Any) -> Result:
    """Return what torchferry says of a file, without raising."""
    return verify(model, path, args, check=False, **{"budget": Budget(), **options})


def crossed(model: torch.nn.Module, args: tuple[Any, ...], tmp_path: Path, axes: Any = None) -> Result:
    """Return what torchferry says of the file that torch.onnx makes of a model."""
    return verdict(model, args, stock(model, args, tmp_path / "model.onnx", axes))


def errors(result: Result) -> list[str]:
    """Return the codes of what is wrong."""
    return [d.code for d in result.diagnoses if d.severity == "error"]


def marked(result: Result) -> bool:
    """Return whether an error points at a line of the test that ends in the comment `culprit`."""
    places = [d.location for d in result.diagnoses if d.severity == "error"]
    return any(p.file and p.line and linecache.getline(p.file, p.line).rstrip().endswith("# culprit") for p in places)
