"""Thousands of broken files: real models with bytes changed, cut or spliced. Each must end in an answer, none in a crash of ours.

    python benchmarks/fuzz.py [how many, default 10000] [seed, default 0]

Prints what came of them; exit code 1 if a file crashed us, went unexplained, or anything was written outside the workspace.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import onnx

from torchferry import pipeline
from torchferry.check import foreign
from torchferry.ort import Worker
from torchferry.records import Budget, Case, Job

TEXTS = (
    """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
        h = Add (x, w)
        y = Relu (h) }""",
    """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, bool c) => (float[N, 3] y) {
        h = Softmax (x)
        y = If (c) <then_branch = a () => (float[N, 3] t) { t = Neg (h) },
                    else_branch = b () => (float[N, 3] e) { e = Abs (x) }> }""",
    """<ir_version: 8, opset_import: ["": 18, "own": 1]> g (int64[N, L] ids) => (float[N, L, 2] y)
        <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { e = Gather (w, ids) y = own.twice (e) }
        <opset_import: ["": 18], domain: "own"> twice (x) => (y) { y = Add (x, x) }""",
    """<ir_version: 8, opset_import: ["": 13]> g (float[N, 1, 6, 6] x) => (float[N, 4] y)
        <float[1, 1, 3, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[2] s = {-1, 4}> {
        c = Conv (x, k)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
        y = Reshape (p, s) }""",
)


class Shared(Worker):
    """A worker that outlives a check: starting a process for each of thousands of files would be all that is measured."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for key in list(self._opened):
            self.close(key)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with one to four things done to them."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        span = chance.choice((1, 1, 2, 4, 16))
        match chance.randrange(6):
            case 0:
                data = data[:at] + bytes(chance.randrange(256) for _ in range(span)) + data[at + span :]
            case 1:
                data = data[:at] + data[at + span :]
            case 2:
                data = data[:at] + bytes(chance.randrange(256) for _ in range(span)) + data[at:]
            case 3 if at > 8:
                data = data[:at]
            case 4 if at < len(data):
                data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
            case _:
                data = data[:at] + data[chance.randrange(len(data) + 1) :][:span] + data[at:]
        data = data or b"\x08"
    return data


def outcome(case: Case) -> str:
    """Return what came of a file: "opens", "diagnosed", or what must not be: "unexplained", "our crash"."""
    step = case.steps[-1]
    if step.fault is not None and step.fault.type_name != "NotAModel":
        return "our crash"
    if case.errors:
        return "diagnosed"
    return "opens" if step.fault is None and step.value.reached else "unexplained"


def fuzz(count: int, seed: int, worker: Worker, folder: Path) -> tuple[Counter[str], list[tuple[bytes, Case]]]:
    """Return how many files came to what, and those that must not have."""
    chance, tally, wrong = random.Random(seed), Counter[str](), []
    models = [onnx.parser.parse_model(t).SerializeToString() for t in TEXTS]
    foreign.Worker = lambda *limits: worker  # type: ignore[misc, assignment]
    place, work = folder / "files", folder / "work"
    place.mkdir()
    work.mkdir()
    for _ in range(count):
        data = mutated(chance.choice(models), chance)
        (place / "model.onnx").write_bytes(data)
        case = pipeline.run(Job(onnx=place / "model.onnx", workspace=work, budget=Budget(time_limit=20)))
        came = outcome(case)
        if [p.name for p in place.iterdir()] != ["model.onnx"]:
            came = "wrote outside"
        tally[came] += 1
        if came not in ("opens", "diagnosed"):
            wrong.append((data, replace(case, diagnoses=case.diagnoses)))
    return tally, wrong


def main(arguments: list[str]) -> int:
    count, seed = (int(a) for a in [*arguments, "10000", "0"][:2]) if len(arguments) != 1 else (int(arguments[0]), 0)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        worker: Any = Shared(time_limit=5.0, memory_limit=8 << 30)
        try:
            tally, wrong = fuzz(count, seed, worker, Path(folder))
        finally:
            Worker.__exit__(worker, None, None, None)
    print(f"{count} files in {time.perf_counter() - began:.0f} s:", dict(tally))
    for data, case in wrong[:10]:
        print(data.hex(), [(s.fault, s.findings) for s in case.steps])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
