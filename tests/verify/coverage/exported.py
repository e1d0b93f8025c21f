"""Files of small models in the forms that exporters give them, and both sides of a comparison, ready to run."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

from torchferry import pipeline
from torchferry.foreign import onnxruntime as ort
from torchferry.records import Budget, Fault, Job
from torchferry.verify.judge.trial import Bench
from torchferry.verify.run.both_sides import open_sides
from torchferry.verify.stage import laid_out
from torchferry.worker import Worker

sys.path.append(str(Path(__file__).parents[1]))


def scripted(model: nn.Module, args: tuple[Any, ...], path: Path, *, fold: bool = True, axes: Any = None) -> Path:
    """Return a file of the old exporter, which folds constants and normalisations unless told not to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, args, str(path), dynamo=False, do_constant_folding=fold, input_names=_names(args), dynamic_axes=axes,
            training=torch.onnx.TrainingMode.EVAL if fold else torch.onnx.TrainingMode.PRESERVE,
        )  # fmt: skip
    return path


def traced(model: nn.Module, args: tuple[Any, ...], path: Path) -> Path:
    """Return a file of the new exporter, which folds what it can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, args, str(path), dynamo=True, verbose=False, input_names=_names(args))
    return path


def optimised(model: nn.Module, args: tuple[Any, ...], path: Path) -> Path:
    """Return a file that onnxruntime has rewritten."""
    made = scripted(model, args, path.with_name("plain.onnx"))
    ort.session(made, level="extended", optimised_to=path)
    return path


def with_data(model: nn.Module, args: tuple[Any, ...], path: Path) -> Path:
    """Return a file whose weights lie beside it."""
    made = onnx.load(str(scripted(model, args, path.with_name("plain.onnx"))))
    onnx.save(made, str(path), save_as_external_data=True, location="weights.data", size_threshold=0)
    return path


def _names(args: tuple[Any, ...]) -> list[str]:
    return ["x", "y", "z"][: len(args)]


FORMS: tuple[Callable[..., Path], ...] = (scripted, traced, optimised, with_data)


def changed(model: nn.Module, change: Callable[[Any], object]) -> nn.Module:
    """Return a copy of a model with something changed in it."""
    twin = copy.deepcopy(model)
    with torch.no_grad():
        change(twin)
    return twin


@contextmanager
def bench_of(model: nn.Module, args: tuple[Any, ...], path: Path) -> Iterator[Bench]:
    """Give both sides of a comparison, ready to run."""
    case = pipeline.run(Job(model, args, onnx=path, workspace=path.parent, budget=Budget(trials=1, mutants=0)))
    with Worker(time_limit=60) as worker:
        sides = open_sides(case.value("inputs"), replace(case.value("translate"), path=path), worker)
        assert not isinstance(sides, Fault)
        laid = laid_out(case, sides)
        assert not isinstance(laid, Fault)
        yield laid[0]
