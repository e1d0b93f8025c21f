"""Convert two public collections of small models that exporters find hard, by us and by plain torch.onnx.export.

    python benchmarks/exportdb.py [--suites exportdb,diagnostic] [--only NAME] [--who ours,stock] [--json FILE]

exportdb    the supported examples of torch's own export database (`torch._export.db.examples`)
diagnostic  the model cases of onnx-diagnostic (`--cases` takes its wheel or folder when it is not installed)

A case counts as right when a file came out that gives what eager gives (`ALLOWED` says how closely) on every input that
the case comes with, with the dynamic shapes that it asks for. Each conversion runs in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import io
import json
import logging
import multiprocessing
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import torchferry

SECONDS = 300  # for one conversion
ALLOWED = (1e-3, 1e-4)  # rtol, atol for floating-point outputs; others are exact
Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Example:
    """A model to convert: how to build it, the calls it must stand, and the dynamic shapes asked for."""

    suite: str
    name: str
    build: Callable[[], Any]
    calls: list[Inputs]
    shapes: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one conversion: `problem` is empty when the file is right everywhere."""

    suite: str
    name: str
    who: str
    problem: str = ""
    codes: list[str] = field(default_factory=list)


def exportdb() -> Iterator[Example]:
    """Yield the examples that torch's export database says are supported."""
    from torch._export.db.case import SupportLevel
    from torch._export.db.examples import filter_examples_by_support_level

    for name, case in sorted(filter_examples_by_support_level(SupportLevel.SUPPORTED).items()):
        calls = [(tuple(case.example_args), dict(case.example_kwargs))]
        if case.extra_args is not None:
            calls.append((tuple(case.extra_args), dict(case.example_kwargs)))
        yield Example("exportdb", name, lambda case=case: case.model, calls, case.dynamic_shapes)


def diagnostic() -> Iterator[Example]:
    """Yield onnx-diagnostic's model cases."""
    module = importlib.import_module("onnx_diagnostic.torch_export_patches.eval.model_cases")
    for name, case in vars(module).items():
        if isinstance(case, type) and issubclass(case, torch.nn.Module):
            given = case._inputs if isinstance(case._inputs, list) else [case._inputs]
            calls = [(tuple(i), {}) for i in (*given, *getattr(case, "_valid", ()))]
            yield Example("diagnostic", name, case, calls, case._dynamic)


SUITES: dict[str, Callable[[], Iterator[Example]]] = {"exportdb": exportdb, "diagnostic": diagnostic}


def ours(example: Example, model: Any, folder: Path) -> Answer:
    """Return what torchferry came to; further inputs that the case comes with are its examples."""
    (args, kwargs), *others = copy.deepcopy(example.calls)
    result = torchferry.export(
        model, args, folder / "ours.onnx", kwargs=kwargs, dynamic_shapes=example.shapes, examples=others or None, check=False
    )
    codes = [d.code for d in result.diagnoses if d.severity == "error"] or [r.code for r in result.repairs]
    if not result.ok:
        first = next((d for d in result.diagnoses if d.severity == "error"), None)
        why = f"refused: {first.code} {first.message}" if first else "refused"
        return Answer(example.suite, example.name, "ours", why, codes)
    problem = compared(example, model, result.path, lambda call, names: result.feeds(*call))
    return Answer(example.suite, example.name, "ours", problem, codes)


def stock(example: Example, model: Any, folder: Path) -> Answer:
    """Return what plain torch.onnx.export came to."""
    args, kwargs = copy.deepcopy(example.calls[0])
    path = folder / "stock.onnx"
    shapes = example.shapes
    torch.onnx.export(model, args, str(path), kwargs=kwargs, dynamic_shapes=shapes, dynamo=True, verbose=False)
    return Answer(example.suite, example.name, "stock", compared(example, model, path, _by_position))


def _by_position(call: Inputs, names: list[str]) -> dict[str, Any]:
    """Return feeds for a file that takes the tensors of a call in their order; one that lost an unused input is forgiven."""
    leaves = torch.utils._pytree.tree_leaves(call)
    tensors = [x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in leaves if isinstance(x, torch.Tensor | int | float)]
    if len(tensors) != len(names):
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    return {name: _array(tensor) for name, tensor in zip(names, tensors, strict=len(tensors) == len(names))}


TOOLS: dict[str, Callable[[Example, Any, Path], Answer]] = {"ours": ours, "stock": stock}


def compared(example: Example, model: Any, path: Path, feeds: Callable[[Inputs, list[str]], dict[str, Any]]) -> str:
    """Return how a file differs from the eager model on the calls of a case; empty if it does not."""
    session = onnxruntime.InferenceSession(str(path))
    names = [i.name for i in session.get_inputs()]
    for number, call in enumerate(example.calls):
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            args, kwargs = copy.deepcopy(call)
            wanted = _tensors(copy.deepcopy(model)(*args, **kwargs))
        got = session.run(None, feeds(copy.deepcopy(call), names))
        if len(wanted) != len(got):
            return f"call {number}: {len(got)} outputs instead of {len(wanted)}"
        for want, have in zip(wanted, got, strict=True):
            if problem := _difference(_array(want), np.asarray(have)):
                return f"call {number}: {problem}"
    return ""


def _tensors(outputs: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(outputs)
    return [x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in leaves if isinstance(x, torch.Tensor | int | float)]


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach().resolve_conj()
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _difference(want: np.ndarray[Any, Any], have: np.ndarray[Any, Any]) -> str:
    if want.shape != have.shape:
        return f"shape {have.shape} instead of {want.shape}"
    if want.dtype.kind != "f":
        return "" if np.array_equal(want, have) else "whole numbers differ"
    close = np.allclose(want, have.astype(want.dtype), rtol=ALLOWED[0], atol=ALLOWED[1], equal_nan=True)
    return "" if close else f"off by {np.nanmax(np.abs(want - have)):.3g}"


def answer(example: Example, who: str) -> Answer:
    """Return one tool's answer, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(example, who, Path(folder), theirs))
        process.start()
        theirs.close()
        told = mine.poll(SECONDS)
        try:
            return mine.recv() if told else Answer(example.suite, example.name, who, f"still busy after {SECONDS} s")  # type: ignore[no-any-return]
        except EOFError:
            return Answer(example.suite, example.name, who, "the process died")
        finally:
            process.kill()
            process.join()


def _work(example: Example, who: str, folder: Path, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = TOOLS[who](example, example.build().eval(), folder)
    except Exception as error:  # the exporters raise anything; here it is an answer like any other
        lines = [line for line in str(error).splitlines() if line.strip()]
        found = Answer(example.suite, example.name, who, f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300])
    pipe.send(found)


def _without_its_patches(folder: str) -> None:
    """Let onnx-diagnostic's packages be imported without what they load: it reaches for parts of transformers that are gone."""
    for name in ("torch_export_patches", "torch_export_patches.eval", "torch_export_patches.patches"):
        package = types.ModuleType(f"onnx_diagnostic.{name}")
        package.__path__ = [str(Path(folder, "onnx_diagnostic", *name.split(".")))]
        sys.modules[package.__name__] = package


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="exportdb,diagnostic")
    parser.add_argument("--who", default="ours,stock")
    parser.add_argument("--only", default="")
    parser.add_argument("--cases", help="a wheel or folder that holds onnx_diagnostic")
    parser.add_argument("--json", type=Path, help="write each answer here, as a line")
    options = parser.parse_args()
    if options.cases:
        sys.path.insert(0, options.cases)
        _without_its_patches(options.cases)
    answers: list[Answer] = []
    for suite in options.suites.split(","):
        for example in SUITES[suite]():
            if options.only not in example.name:
                continue
            for who in options.who.split(","):
                found = answer(example, who)
                answers.append(found)
                print(f"{suite:11}{example.name:42}{who:6}", found.problem or "right", *found.codes, flush=True)
                if options.json:
                    with options.json.open("a") as file:
                        file.write(json.dumps(asdict(found)) + "\n")
        for who in options.who.split(","):
            mine = [a for a in answers if a.suite == suite and a.who == who]
            print(f"{suite}: {who} {sum(not a.problem for a in mine)} of {len(mine)}")


if __name__ == "__main__":
    main()
