"""Sweep torch's own operator database: each operator converted by us and by plain torch.onnx.export, in one run.

    python benchmarks/ops.py docs/operators.md [--only NAME] [--samples 3] [--no-stock]

An entry counts as right when every sample tried gives what eager gives (rtol 1e-4, atol 1e-5, NaN equal). Left out are
entries whose result is random, sparse, or not a tensor. Needs `expecttest`.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from torchferry import ort
from torchferry.records import Bound, Captured, Case, Fault, Job, Signature, Step, TensorSpec
from torchferry.translate import translate

SECONDS = 60  # for one sample
# Random in truth: the database fixes their seed, which no other runtime can follow.
RANDOM = (
    "bernoulli",
    "cauchy",
    "dropout",
    "empty",
    "exponential",
    "fractional_max_pool",
    "geometric",
    "log_normal",
    "lowrank",
    "multinomial",
)
RANDOM += ("new_empty", "normal.", "rand", "rrelu", "uniform")
Convert = Callable[["Call", Path], "Path | str"]  # a file, or why there is none


class Call(torch.nn.Module):
    """One sample as a module: its tensors are the inputs, all else is fixed."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        self.operator, self.finish = operator, sample.output_process_fn_grad
        leaves, self.spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.rest = [None if i in self.at else leaf for i, leaf in enumerate(leaves)]
        self.tensors = tuple(leaves[i].detach().clone() for i in self.at)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self.rest)
        for index, tensor in zip(self.at, tensors, strict=True):
            leaves[index] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.finish(self.operator(first, *args, **kwargs))
        return tuple(t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor))

    def eager(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return what torch itself gives."""
        torch.manual_seed(seed)
        with torch.no_grad():
            return self(*(t.clone() for t in self.tensors))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Row:
    """An entry of the table: None is right, text says what went wrong."""

    name: str
    ours: str | None
    stock: str | None


def ours(call: Call, folder: Path) -> Path | str:
    """Return torchferry's file."""
    with torch.no_grad():
        program = torch.export.export(call, call.tensors, strict=False)
        count = len(call.eager(0))
    specs = tuple(TensorSpec(f"x{i}", str(t.dtype).removeprefix("torch."), tuple(t.shape)) for i, t in enumerate(call.tensors))
    names = tuple(f"y{i}" for i in range(count))
    bound = Bound(call, call.tensors, Signature(specs), names, None, vary=lambda *_: (), feeds=lambda *_: {})
    step = translate(
        Case(Job(workspace=folder), (Step("inputs", value=bound), Step("capture", value=Captured(program, "non-strict"))))
    )
    return step.value.path if step.fault is None else f"{step.fault.type_name}: {step.fault.text}"


def stock(call: Call, folder: Path) -> Path | str:
    """Return plain torch.onnx.export's file."""
    path = folder / "stock.onnx"
    with torch.no_grad():
        torch.onnx.export(call, call.tensors, str(path), dynamo=True, verbose=False, external_data=False)
    return path


def judge(convert: Convert, call: Call, wanted: tuple[torch.Tensor, ...], worker: ort.Worker) -> str | None:
    """Return what is wrong with a conversion of this call; None if nothing is."""
    folder = Path(tempfile.mkdtemp())
    signal.alarm(SECONDS)
    try:
        made = convert(call, folder)
        return made if isinstance(made, str) else compare(made, call, wanted, worker)
    except Exception as error:  # the exporters raise anything; here it is a result like any other
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        shutil.rmtree(folder, ignore_errors=True)


def compare(path: Path, call: Call, wanted: tuple[torch.Tensor, ...], worker: ort.Worker) -> str | None:
    """Return how the file's outputs differ from eager's; None if they don't."""
    import onnx

    names = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    key = worker.open(path)
    if isinstance(key, Fault):
        return key.text
    got = worker.run(key, dict(zip(names, map(_array, call.tensors), strict=False)))
    worker.close(key)
    if isinstance(got, Fault):
        return got.text
    try:
        for have, want in zip(got, wanted, strict=True):
            torch.testing.assert_close(torch.tensor(np.array(have)), _real(want), rtol=1e-4, atol=1e-5, equal_nan=True)
    except (AssertionError, ValueError, TypeError) as error:
        return str(error)
    return None


def _real(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(tensor.contiguous()) if tensor.is_complex() else tensor


def _array(tensor: torch.Tensor) -> np.ndarray:
    return _real(tensor).numpy()


def entries(only: str | None, most: int) -> Iterator[tuple[str, list[Call]]]:
    """Yield the name and samples of every operator that is deterministic, dense and takes float32."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        name = ".".join(part for part in (operator.name, operator.variant_test_name) if part)
        if torch.float32 not in operator.dtypes or (only is not None and only not in name):
            continue
        if any(word in name + "." for word in RANDOM) and not name.startswith("linalg"):
            continue
        try:
            samples = list(operator.sample_inputs("cpu", torch.float32, requires_grad=False))
        except (RuntimeError, ImportError):
            continue
        chosen = samples if len(samples) <= most else [samples[round(i * (len(samples) - 1) / (most - 1))] for i in range(most)]
        calls = [Call(operator.op, sample).eval() for sample in chosen]
        if calls := [c for c in calls if _fair(c)]:
            yield name, calls


def _fair(call: Call) -> bool:
    """Whether a sample can be judged: dense tensors come out, and the same ones for another seed."""
    try:
        first, second = call.eager(0), call.eager(1)
    except (RuntimeError, NotImplementedError):
        return False
    if not first or any(t.layout != torch.strided for t in (*first, *call.tensors)):
        return False
    return all(a.shape == b.shape and torch.allclose(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


def table(rows: list[Row], with_stock: bool) -> str:
    """Return the page."""
    good, plain = sum(r.ours is None for r in rows), sum(r.stock is None for r in rows)
    lines = [
        "# Operators",
        "",
        "Generated by `make ops` from torch's own operator tests (float32, CPU), each run against eager.",
        "",
    ]
    lines += [f"- torchferry: {good} of {len(rows)} right ({good / len(rows):.1%})"]
    lines += (
        [f"- torch.onnx.export (torch {torch.__version__}): {plain} of {len(rows)} right ({plain / len(rows):.1%})"]
        if with_stock
        else []
    )
    lines += ["", "| operator | torchferry | torch.onnx.export |", "|---|---|---|"]
    for row in rows:
        lines.append(f"| `{row.name}` | {_cell(row.ours)} | {_cell(row.stock) if with_stock else ''} |")
    return "\n".join(lines) + "\n"


def _cell(problem: str | None) -> str:
    return "yes" if problem is None else "no: " + problem.split("\n")[0].replace("|", "/")[:100]


def main() -> None:
    """Sweep, and write the page."""
    parser = argparse.ArgumentParser(description="sweep torch's operator database")
    parser.add_argument("page", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--no-stock", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _too_long)
    rows = []
    with ort.Worker(time_limit=SECONDS) as worker:
        for name, calls in entries(options.only, options.samples):
            wanted = [call.eager(0) for call in calls]
            results = []
            for convert in (ours,) if options.no_stock else (ours, stock):
                problems = (judge(convert, c, w, worker) for c, w in zip(calls, wanted, strict=True))
                results.append(next((p for p in problems if p is not None), None))
            rows.append(Row(name, results[0], results[-1]))
            print(f"{name}: {_cell(results[0])}", flush=True)
    options.page.write_text(table(rows, not options.no_stock), encoding="utf-8")


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no answer within {SECONDS} s")


if __name__ == "__main__":
    main()
