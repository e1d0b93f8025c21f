"""Thousands of broken files: real models with bytes or fields changed, cut or spliced; and programs, directories, metadata and
certificates that were broken or made to do harm. Each must end in an answer, none in a crash of ours.

    python benchmarks/fuzz.py [how many, default 10000] [seed, default 0]

The models are small exports (MLP, CNN, LSTM, BERT, GPT-2, a quantised one, one with its weights in another file) and some
written by hand. Every twentieth file is mended as well, as far as repairs go. Half of all are models, and an eighth each of the
other kinds. Prints what came of them; exit code 1 if a file crashed us, hung, went unexplained, had anything run, or if
anything was written outside the workspace.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

import fuzz_bases
import fuzz_documents
import fuzz_fields
import onnx

from torchferry import pipeline
from torchferry.check.reading import incoming
from torchferry.records import Budget, Case, Job
from torchferry.worker import Worker

SLOWEST = 30.0  # seconds for one file, repairs included; more is a hang
MENDED = 20  # every so many files are mended too


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


def fuzz(
    count: int, seed: int, worker: Worker, folder: Path, bases: list[fuzz_bases.Base]
) -> tuple[Counter[str], list[tuple[bytes, Any]]]:
    """Return how many files came to what, and those that must not have."""
    chance, tally, wrong = random.Random(seed), Counter[str](), []
    incoming.Worker = lambda *limits: worker  # type: ignore[misc, assignment]
    place = folder / "files"
    place.mkdir()
    for number in range(count):
        base = chance.choice(bases)
        data = mutated(base.model, chance) if chance.random() < 0.5 else fuzz_fields.mutated(base.model, chance)
        came, detail = _tried(base, data, place, mend=number % MENDED == 0)
        tally[came] += 1
        if came not in ("opens", "diagnosed", "mended"):
            wrong.append((data, f"{base.name}: {detail}"))
        if count >= 1000 and number % 1000 == 999:
            print(f"{number + 1}: {dict(tally)}", file=sys.stderr, flush=True)
    return tally, wrong


def _tried(base: fuzz_bases.Base, data: bytes, place: Path, mend: bool) -> tuple[str, str]:
    """Return what came of one file, and details of what must not have."""
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        for file in place.iterdir():
            file.unlink()
        (place / "model.onnx").write_bytes(data)
        if base.data is not None:
            (place / "model.onnx.data").write_bytes(base.data)
        job = Job(onnx=place / "model.onnx", workspace=Path(scratch), budget=Budget(time_limit=20))
        began = time.perf_counter()
        try:
            history = pipeline.heal(job, "safe") if mend else None
            case = history.best if history is not None else pipeline.run(job)
        except Exception as error:  # whatever it is, it is what this script looks for
            return "our crash", f"{type(error).__name__}: {error}"
        spent = time.perf_counter() - began
    came = "mended" if history is not None and case.ok and len(history.cases) > 1 else outcome(case)
    left = {p.name: p.read_bytes() for p in place.iterdir()}
    if left != {"model.onnx": data, **({"model.onnx.data": base.data} if base.data is not None else {})}:
        return "wrote outside", str(sorted(left))
    return ("hung", f"{spent:.0f} s") if spent > SLOWEST else (came, str([(s.fault, s.findings) for s in case.steps])[:2000])


def documents(count: int, seed: int) -> int:
    """Break so many documents of each kind, say what came of them, and return how many came to what they must not."""
    broken = 0
    for kind in (fuzz_documents.programs(), *fuzz_documents.files(), fuzz_documents.directories()):
        with tempfile.TemporaryDirectory() as folder:
            tally, wrong = fuzz_documents.fuzz(kind, count, seed, Path(folder))
        print(f"{count} {kind.name}: {dict(tally)}", *(" ".join(one) for one in wrong[:10]), sep="\n", flush=True)
        broken += len(wrong)
    return broken


def main(arguments: list[str]) -> int:
    count, seed = (int(a) for a in [*arguments, "10000", "0"][:2]) if len(arguments) != 1 else (int(arguments[0]), 0)
    bases = [*fuzz_bases.by_hand(), *fuzz_bases.exported()]
    began = time.perf_counter()
    broken = documents(count // 8, seed)
    count -= 4 * (count // 8)
    with tempfile.TemporaryDirectory() as folder:
        worker: Any = Shared(time_limit=5.0, memory_limit=8 << 30)
        try:
            tally, wrong = fuzz(count, seed, worker, Path(folder), bases)
        finally:
            Worker.__exit__(worker, None, None, None)
    sizes = ", ".join(f"{b.name} {len(onnx.load_model_from_string(b.model).graph.node)}" for b in bases)
    print(f"{count} files in {time.perf_counter() - began:.0f} s: {dict(tally)}\nmade from (nodes): {sizes}")
    for data, detail in wrong[:10]:
        print(data.hex()[:400], detail)
    return 1 if wrong or broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
