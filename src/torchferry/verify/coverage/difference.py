"""Whether other weights are what makes trials fail: the file is run once more with the model's own in their places."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchferry.records import Fault, Finding
from torchferry.verify.coverage.rewritten import rewrite
from torchferry.verify.coverage.unlike import Unlike
from torchferry.verify.coverage.weights import Weights
from torchferry.verify.judge.trial import Bench, Judged, differences
from torchferry.verify.run.both_sides import session_options

ASKED = 4  # failing trials that are run again
TOLD = 8


def differing_weights(bench: Bench, work: Weights, beside: Sequence[Unlike], judged: Sequence[Judged]) -> Iterator[Finding]:
    """Yield that weights differ, where they do beyond doubt: partly equal ones, and such as make the file right when replaced."""
    failing = [j for j in judged if j.trial.outcome == "differ"][:ASKED]
    if not beside or not failing:
        return
    cured = _cured(bench, work, beside, failing)
    first = next((u for u in beside if u.changed), beside[0])
    if cured < len(failing) and not first.changed:
        return
    worst = failing[0].trial
    facts = {
        "weight": first.stored.name,
        "near": first.near.name,
        "words": first.words,
        "proof": f"{worst.name}: {worst.differences[0].words}" if worst.differences else worst.name,
        "changed": first.changed,
        "others": [f"`{u.near.name}`: {u.words}" for u in beside if u is not first][:TOLD],
        "cured": cured,
    }
    yield Finding("weights-differ", None, facts)


def _cured(bench: Bench, work: Weights, beside: Sequence[Unlike], failing: Sequence[Judged]) -> int:
    """Return how many failing trials agree once the model's own numbers stand in the file."""
    sides, numbers = bench.sides, {}
    for one in beside:
        if (values := one.near.made(work.tensors, {})) is not None:
            numbers[one.stored.graph, one.stored.name] = values
    with tempfile.TemporaryDirectory(prefix=".torchferry-") as folder:
        key = sides.worker.open(rewrite(Path(sides.file.path), numbers, Path(folder)), **session_options(sides.file.settings))
        if isinstance(key, Fault):
            return 0
        runs = [(j, sides.run(j.args, key)) for j in failing]
        sides.worker.close(key)
    return sum(not isinstance(got, Fault) and not differences(bench, j.want, got)[0] for j, got in runs)
