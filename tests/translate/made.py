"""Cases made by hand: a module captured as stage 2 would, ready for stage 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchferry.capture import capture
from torchferry.foreign import onnxruntime as ort
from torchferry.records import Bound, Captured, Case, Job, Signature, Step, TensorSpec
from torchferry.repair.search import searched
from torchferry.translate import translate


class Flat(torch.nn.Module):
    """The flat form: tensors in, a tuple of tensors out, the user's module under `model`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.model(*args)
        return tuple(result) if isinstance(result, tuple | list) else (result,)


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def case(model: Any, args: Sequence[torch.Tensor], folder: Path, axes: Sequence[dict[int, str]] = (), **job: Any) -> Case:
    """Return a Case that stage 3 can start from; `axes` names the moving axes of each input."""
    module = model if isinstance(model, torch.nn.Module) else Function(model)
    flat, args = Flat(module.eval()), tuple(args)
    axes = axes or [{}] * len(args)
    shapes = tuple(dict.fromkeys(a, torch.export.Dim.DYNAMIC) or None for a in axes)
    with torch.no_grad(), torch.fx.experimental._config.patch(backed_size_oblivious=True):
        program = torch.export.export(flat, args, dynamic_shapes=(shapes,), strict=False)
        outputs = flat(*[a.clone() for a in args])
    specs = tuple(
        TensorSpec(f"x{i}", str(t.dtype).removeprefix("torch."), tuple(a.get(n, size) for n, size in enumerate(t.shape)))
        for i, (t, a) in enumerate(zip(args, axes, strict=True))
    )
    names = tuple(f"y{i}" for i in range(len(outputs)))
    bound = Bound(flat, args, Signature(specs), names, shapes, vary=lambda *_: args, feeds=lambda *_: {})
    steps = (Step("inputs", value=bound), Step("capture", value=Captured(program, "non-strict")))
    return Case(Job(module, args, workspace=folder, **job), steps)


def through_capture(model: Any, args: Sequence[torch.Tensor], folder: Path, axes: Sequence[dict[int, str]]) -> Step:
    """Return the Step of stage 3, after the real stage 2: it takes what torch.export alone refuses."""
    module = Flat(Function(model).eval())
    shapes = tuple(dict.fromkeys(a, torch.export.Dim.DYNAMIC) or None for a in axes)
    specs = tuple(
        TensorSpec(f"x{i}", str(t.dtype).removeprefix("torch."), tuple(a.get(n, size) for n, size in enumerate(t.shape)))
        for i, (t, a) in enumerate(zip(args, axes, strict=True))
    )
    names = tuple(f"y{i}" for i in range(len(module(*[a.clone() for a in args]))))
    bound = Bound(module, tuple(args), Signature(specs), names, (shapes,), vary=lambda *_: args, feeds=lambda *_: {})
    started = Case(Job(workspace=folder), (Step("inputs", value=bound),))
    captured = searched(started, capture(started))
    return captured if captured.fault else translate(Case(started.job, (*started.steps, captured)))


def run(path: Path, args: Sequence[torch.Tensor], level: str = "all") -> list[np.ndarray]:
    """Return the file's outputs."""
    session = ort.session(path, level=level)
    return session.run(None, {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)})


def agree(
    model: Any, args: Sequence[torch.Tensor], folder: Path, axes: Sequence[dict[int, str]] = (), others: Any = (), **job: Any
) -> Any:
    """Assert that the file gives what the model gives, on the example and on other calls; return the Translated."""
    step = translate(case(model, args, folder, axes, **job))
    assert step.fault is None, (step.fault, step.findings)
    for call in (tuple(args), *others):
        with torch.no_grad():
            wanted = model(*[a.clone() for a in call])
        wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
        got = run(step.value.path, call)
        assert len(got) == len(wanted)
        for have, want in zip(got, wanted, strict=True):
            torch.testing.assert_close(torch.tensor(have), want.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
    return step.value
