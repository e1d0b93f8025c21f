"""Sweep torch's own operator database: each operator converted by us and by plain torch.onnx.export, on the same samples.

    python benchmarks/ops.py docs/operators.md [--only NAME] [--dtypes float32,int64] [--shard 0/2] [--who ours] [--page-only]

An entry counts as right when every sample tried gives what eager gives (`ALLOWED` says how closely; NaN equals NaN). Left
out are entries whose result is random, sparse, or not a tensor. Each answer is kept in `build/ops/` as soon as it is known,
and counts again for the same code and the same versions: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import torch
from operators_page import Answer, page
from opinfo import Call, entries
from torch.onnx._internal.exporter._registration import ONNXRegistry

import torchferry
from torchferry.capture import capture
from torchferry.edits.capture import PrepareFloat32Kernels
from torchferry.records import Bound, Case, Edit, Fault, Job, Signature, Step, TensorSpec
from torchferry.repair.search import searched
from torchferry.translate import translate
from torchferry.verify.arrays import arrays
from torchferry.worker import Worker

SECONDS = 60  # for one sample
SAMPLES = {"float32": 3, "int64": 1, "bool": 1, "float64": 1, "float16": 1, "bfloat16": 1, "complex64": 1}  # of each entry
ALLOWED = {
    "float16": (5e-3, 5e-3),
    "bfloat16": (2e-2, 2e-2),
    "float32": (1e-4, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1e-4, 1e-5),
}  # rtol, atol; others are exact
KEPT = Path("build/ops")
LIBRARY = cache(ONNXRegistry.from_torchlib)
Convert = Callable[[Call, Path, Worker], "Path | str"]  # a file, or why there is none


def ours(call: Call, folder: Path, worker: Worker) -> Path | str:
    """Return torchferry's file: captured and translated as `torchferry.export` does it.

    Of its repairs one is taken, and as there only if the file does not load: a dtype that the runtime has no kernels for is
    computed in float32.
    """
    path = _ours(call, folder / "first", ())
    dtype = next((name for name in ("bfloat16", "float64") if any(t.dtype == getattr(torch, name) for t in call.tensors)), None)
    if isinstance(path, str) or dtype is None or _loads(path, worker):
        return path
    for number, everywhere in enumerate((False, True)):
        again = _ours(call, folder / f"again{number}", (PrepareFloat32Kernels(dtype, all=everywhere),))
        if isinstance(again, Path) and _loads(again, worker):
            return again
    return path


def _ours(call: Call, folder: Path, edits: tuple[Edit, ...]) -> Path | str:
    folder.mkdir()
    specs = tuple(TensorSpec(f"x{i}", str(t.dtype).removeprefix("torch."), tuple(t.shape)) for i, t in enumerate(call.tensors))
    names = tuple(f"y{i}" for i in range(len(call.eager(0))))
    bound = Bound(call, call.tensors, Signature(specs), names, None, vary=lambda *_: (), feeds=lambda *_: {})
    case = Case(Job(workspace=folder, edits=edits), (Step("inputs", value=bound),))
    for stage in (capture, translate):
        step = searched(case, stage(case))
        if step.fault is not None:
            return f"{step.fault.type_name}: {step.fault.text}"
        case = replace(case, steps=(*case.steps, step))
    return step.value.path  # type: ignore[no-any-return]


def _loads(path: Path, worker: Worker) -> bool:
    key = worker.open(path)
    if isinstance(key, Fault):
        return False
    worker.close(key)
    return True


def stock(call: Call, folder: Path, _: Worker) -> Path | str:
    """Return plain torch.onnx.export's file; its operator library, the same for every call, is built once."""
    path = folder / "stock.onnx"
    with torch.no_grad(), mock.patch.object(ONNXRegistry, "from_torchlib", staticmethod(LIBRARY)):
        torch.onnx.export(call, call.tensors, str(path), dynamo=True, verbose=False, external_data=False)
    return path


TOOLS: dict[str, Convert] = {"ours": ours, "stock": stock}


def judge(convert: Convert, call: Call, wanted: tuple[torch.Tensor, ...], worker: Worker) -> str | None:
    """Return what is wrong with a conversion of this call; None if nothing is."""
    folder = Path(tempfile.mkdtemp())
    signal.alarm(SECONDS)
    try:
        made = convert(call, folder, worker)
        return made if isinstance(made, str) else compare(made, call, wanted, worker)
    except Exception as error:  # the exporters raise anything; here it is a result like any other
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        shutil.rmtree(folder, ignore_errors=True)


def compare(path: Path, call: Call, wanted: tuple[torch.Tensor, ...], worker: Worker) -> str | None:
    """Return how the file's outputs differ from eager's; None if they don't."""
    names = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    key = worker.open(path)
    if isinstance(key, Fault):
        return key.text
    got = worker.run(key, dict(zip(names, arrays(call.tensors), strict=False)))
    worker.close(key)
    if isinstance(got, Fault):
        return got.text
    try:
        for have, want in zip(got, map(_real, wanted), strict=True):
            rtol, atol = ALLOWED.get(str(want.dtype).removeprefix("torch."), (0.0, 0.0))
            torch.testing.assert_close(_tensor(have), want, rtol=rtol, atol=atol, equal_nan=True)
    except (AssertionError, ValueError, TypeError) as error:
        return str(error)
    return None


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":  # which torch does not take from numpy
        return torch.tensor(array.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(np.array(array))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(tensor.contiguous()) if tensor.is_complex() else tensor


def sweep(todo: Iterator[tuple[str, str, str, list[Call]]], worker: Worker) -> Iterator[Answer]:
    """Yield an answer for each tool, operator and dtype that is to be measured."""
    for who, name, dtype, calls in todo:
        problems = (judge(TOOLS[who], call, call.eager(0), worker) for call in calls)
        problem = next((p for p in problems if p is not None), None)
        first = None if problem is None else " ".join(problem.split())[:300]
        yield Answer(who, name, dtype, len(calls), first, fingerprint(who))


def asked(options: argparse.Namespace, known: set[tuple[str, str, str]]) -> Iterator[tuple[str, str, str, list[Call]]]:
    """Yield what this process is to measure."""
    index, count = (int(part) for part in options.shard.split("/"))
    for dtype in options.dtypes.split(","):
        for number, entry in enumerate(entries(options.only)):
            todo = [who for who in options.who.split(",") if (who, entry.name, dtype) not in known]
            if number % count != index or not todo or not entry.takes(getattr(torch, dtype)):
                continue
            if calls := entry.calls(getattr(torch, dtype), SAMPLES[dtype]):
                for who in todo:
                    yield who, entry.name, dtype, calls


@cache  # once, for the code as it was when this process began
def fingerprint(who: str) -> str:
    """Return what an answer depends on: the versions, and for ours the code."""
    parts = [f"{name} {metadata.version(name)}" for name in ("torch", "onnx", "onnxscript", "onnxruntime")]
    if who == "ours":
        folder = Path(str(torchferry.__file__)).parent
        rooms = (folder / "capture", folder / "repair" / "search", folder / "translate")
        files = sorted(f for room in rooms for f in room.rglob("*.py"))
        parts.append(hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:12])
    return ", ".join(parts)


def kept(folder: Path) -> dict[tuple[str, str, str], Answer]:
    """Return the answers of earlier runs that still hold, by tool, operator and dtype."""
    now = {who: fingerprint(who) for who in TOOLS}
    lines = (json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines())
    answers = (Answer(**line) for line in lines)
    return {(a.who, a.name, a.dtype): a for a in answers if a.of == now[a.who]}


def main() -> None:
    """Sweep, and write the page."""
    parser = argparse.ArgumentParser(description="sweep torch's operator database")
    parser.add_argument("page", type=Path)
    parser.add_argument("--only", help="operators whose name has this in it")
    parser.add_argument("--dtypes", default=",".join(SAMPLES))
    parser.add_argument("--shard", default="0/1", help="this part of so many, for several processes")
    parser.add_argument("--who", default=",".join(TOOLS))
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--page-only", action="store_true", help="write the page from what is kept, measure nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _too_long)
    options.kept.mkdir(parents=True, exist_ok=True)
    for who in TOOLS:
        fingerprint(who)
    if not options.page_only:
        with Worker(time_limit=SECONDS) as worker, (options.kept / f"{os.getpid()}.jsonl").open("a") as file:
            for answer in sweep(asked(options, set(kept(options.kept))), worker):
                print(json.dumps(asdict(answer)), file=file, flush=True)
                print(f"{answer.who} {answer.name} {answer.dtype}: {answer.problem or 'yes'}", flush=True)
    options.page.write_text(page(list(kept(options.kept).values()), SAMPLES, ALLOWED), encoding="utf-8")


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no answer within {SECONDS} s")


if __name__ == "__main__":
    main()
