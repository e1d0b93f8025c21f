"""Each excuse grants what it is for, and refuses what merely looks like it; none speaks for a number without a proof."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from crossing import errors, stock, verdict

from torchferry import pipeline
from torchferry.records import Case, Fault, Job
from torchferry.verify.judge.compare import wrong
from torchferry.verify.judge.excuses import EXCUSES
from torchferry.verify.judge.excuses.excuse import Example, Excuse, Plea
from torchferry.verify.judge.trial import Bench
from torchferry.verify.run.both_sides import open_sides
from torchferry.verify.stage import laid_out
from torchferry.verify.trials.plans import TrialPlan
from torchferry.worker import Worker

NAMES = [e.claim.split(":")[0] for e in EXCUSES]


@contextmanager
def bench_for(example: Example, path: Path) -> Iterator[Bench]:
    """Give both sides of an example, with what is allowed: as the stage lays them out before its trials."""
    torch.manual_seed(0)
    job = Job(example.model.eval(), example.args, onnx=stock(example.twin.eval(), example.args, path))
    case = Case(job)
    for stage in ("inputs", "translate"):
        case = case.plus(pipeline._answer(stage, case))
    with Worker() as worker:
        sides = open_sides(case.value("inputs"), case.value("translate"), worker)
        assert not isinstance(sides, Fault), sides
        laid = laid_out(case, sides)
        assert not isinstance(laid, Fault), laid
        yield laid[0]


def unexplained(excuse: Excuse, example: Example, path: Path) -> tuple[int, int]:
    """Return how many numbers differ, and how many of them an excuse leaves unexplained."""
    with bench_for(example, path) as bench:
        factor = {"huge": 1e30, "times 1e+09": 1e9}.get(example.values)
        args = tuple(factor * a for a in example.args) if factor else example.args
        want, got = bench.sides.eager(args), bench.sides.run(args)
        assert not isinstance(want, Fault)
        assert not isinstance(got, Fault)
        left = [wrong(w, g, a) for w, g, a in zip(want, got, bench.allowed, strict=True)]
        proof = excuse.prove(Plea(bench, TrialPlan({}, example.values, given=args), args, want, got, left))
        found = proof.elements if proof is not None else [np.zeros(x.shape, bool) for x in left]
        return sum(int(x.sum()) for x in left), sum(int((x & ~f).sum()) for x, f in zip(left, found, strict=True))


@pytest.mark.parametrize("excuse", EXCUSES, ids=NAMES)
def test_an_excuse_grants_what_it_is_for(excuse: Excuse, tmp_path: Path) -> None:
    torch.manual_seed(1)
    for n, example in enumerate(excuse.right()):
        differ, left = unexplained(excuse, example, tmp_path / f"right{n}.onnx")
        assert differ > 0, "an example that does not differ shows nothing"
        assert left == 0, f"example {n}: {left} of {differ} numbers are not explained"


@pytest.mark.parametrize("excuse", EXCUSES, ids=NAMES)
def test_an_excuse_refuses_what_merely_looks_like_it(excuse: Excuse, tmp_path: Path) -> None:
    torch.manual_seed(1)
    for n, example in enumerate(excuse.wrong()):
        differ, left = unexplained(excuse, example, tmp_path / f"wrong{n}.onnx")
        assert left > 0, f"example {n}: all {differ} numbers that differ are explained away"


@pytest.mark.parametrize("excuse", EXCUSES, ids=NAMES)
def test_what_merely_looks_like_an_excuse_is_refused_by_the_verifier_as_a_whole(excuse: Excuse, tmp_path: Path) -> None:
    torch.manual_seed(1)
    for n, example in enumerate(excuse.wrong()):
        result = verdict(example.model.eval(), example.args, stock(example.twin.eval(), example.args, tmp_path / f"{n}.onnx"))
        assert errors(result), f"example {n}"


@pytest.mark.parametrize("excuse", EXCUSES, ids=NAMES)
def test_what_an_excuse_is_for_passes_the_verifier_as_a_whole(excuse: Excuse, tmp_path: Path) -> None:
    torch.manual_seed(1)
    for n, example in enumerate(excuse.right()):
        args = tuple(a.nan_to_num(posinf=1.0) if a.is_floating_point() else a for a in example.args)  # the rest is for trials
        result = verdict(example.model.eval(), args, stock(example.twin.eval(), args, tmp_path / f"{n}.onnx"))
        assert not errors(result), f"example {n}: {result}"
