"""The mutation score: of so many small changes to the file, how many its trials would have noticed.

A mutant counts as noticed where a trial that agreed does not agree with it. One that nothing notices counts against the score
whether it could be noticed or not: only what cannot change a number by its making is not counted (see `mutations`), so the
score is a lower bound. A mutant that does not load is none.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from torchferry.records import Fault
from torchferry.verify.arrays import Array
from torchferry.verify.coverage.rewritten import copied, written
from torchferry.verify.coverage.schemata import SELECTOR, Mutant, schemata
from torchferry.verify.judge.trial import Bench, Judged, differences
from torchferry.worker import Worker

MOST = 96  # mutants that are tried
WORK = 5e9  # multiplications that all of them may cost together
NODE = 1e5  # what it costs to run a node at all, in multiplications
MOST_TRIALS, FEWEST_TRIALS = 64, 4  # that a mutant is held against before it counts as not noticed
PATIENCE = 10.0  # seconds for one run: a mutant may never end
SHAPES = ("Shape", "Size", "ConstantOfShape", "Range", "EyeLike")  # their results hang on no value of their inputs


@dataclass(frozen=True, slots=True)
class Flock:
    """Mutants in open sessions: for each the session's key, and its number there."""

    mutants: tuple[Mutant, ...]
    where: tuple[tuple[str, int], ...]

    def noticed(self, bench: Bench, number: int, judged: Judged) -> bool:
        """Return whether a trial does not agree with a mutant."""
        key, chosen = self.where[number]
        return _unlike(bench, key, chosen, judged)

    def left(self, bench: Bench, trials: Sequence[Judged], alive: Sequence[int] | None = None) -> list[int]:
        """Return the numbers of the mutants that none of the trials notices."""
        left = list(range(len(self.mutants)) if alive is None else alive)
        for judged in trials:
            sound = {k: not _unlike(bench, k, -1, judged) for k in {self.where[n][0] for n in left}}
            left = [n for n in left if not (sound[self.where[n][0]] and self.noticed(bench, n, judged))]
        return left


def _unlike(bench: Bench, key: str, chosen: int, judged: Judged) -> bool:
    got = _run(bench, key, chosen, judged)
    return isinstance(got, Fault) or bool(differences(bench, judged.want, got)[0])


def _run(bench: Bench, key: str, chosen: int, judged: Judged) -> list[Array] | Fault:
    feeds = {**bench.sides.feeds(judged.args), SELECTOR: np.asarray(chosen, np.int64)}
    got = bench.sides.worker.run(key, feeds)
    return got if isinstance(got, Fault) else [got[i] for i in bench.sides.order if i < len(got)]


@contextmanager
def opened(bench: Bench, mutants: Sequence[Mutant], plain: Judged, room: Path | None) -> Iterator[Flock]:
    """Give the mutants in as few sessions as can be; those that do not load are left out. `plain` is a trial that agrees."""
    path = Path(bench.sides.file.path)
    with tempfile.TemporaryDirectory(prefix=".torchferry-", dir=room) as folder, _impatient(bench.sides.worker):
        groups = list(_sessions(bench, path, Path(folder), list(mutants), plain))
        yield Flock(tuple(m for _, g in groups for m in g), tuple((k, n) for k, g in groups for n in range(len(g))))
        for key, _ in groups:
            bench.sides.worker.close(key)


def _sessions(bench: Bench, path: Path, folder: Path, mutants: list[Mutant], plain: Judged) -> Iterator[tuple[str, list[Mutant]]]:
    if not mutants:
        return
    own = folder / f"{len(list(folder.iterdir()))}"
    own.mkdir()
    made = written(schemata(copied(bench.sides.model), mutants), path, own)
    for level in ("none", "basic"):  # without any optimisation onnxruntime loses casts that only a branch takes
        key = bench.sides.worker.open(made, level=level)
        if isinstance(key, Fault):
            break
        if not isinstance(_run(bench, key, -1, plain), Fault):
            yield key, mutants
            return
        bench.sides.worker.close(key)
    if len(mutants) > 1:  # onnxruntime refuses some mutant's shapes or types; whose, halving tells
        half = len(mutants) // 2
        yield from _sessions(bench, path, folder, mutants[:half], plain)
        yield from _sessions(bench, path, folder, mutants[half:], plain)


@contextmanager
def _impatient(worker: Worker) -> Iterator[None]:
    usual, worker.time_limit = worker.time_limit, min(PATIENCE, worker.time_limit)
    try:
        yield
    finally:
        worker.time_limit = usual


def sample(graph: onnx.GraphProto, every: Sequence[Mutant], number: int, seed: int) -> list[Mutant]:
    """Return so many mutants: of as many nodes as can be, those that compute with values before those that count sizes."""
    chance = random.Random(seed)
    by_node: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in every:
        by_node.setdefault((mutant.graph, mutant.node), []).append(mutant)
    telling = with_values(graph)
    nodes = list(by_node)
    chance.shuffle(nodes)
    for group in by_node.values():
        chance.shuffle(group)
    rounds = range(max((len(g) for g in by_node.values()), default=0))
    parts = [n for n in nodes if n[1] in telling], [n for n in nodes if n[1] not in telling]
    order = [by_node[n][r] for part in parts for r in rounds for n in part if r < len(by_node[n])]
    return order[:number]


def with_values(graph: onnx.GraphProto, outside: frozenset[str] = frozenset()) -> set[str]:
    """Return the values that hang on values of the inputs, and not merely on their sizes; those of nested graphs too."""
    fed = set(outside) | ({i.name for i in graph.input} - {t.name for t in graph.initializer})
    for node in graph.node:
        nested = [a.g for a in node.attribute if a.HasField("g")]
        if node.op_type not in SHAPES and (fed & set(node.input) or nested):
            fed.update(node.output)
        for inner in nested:
            fed |= with_values(inner, frozenset(fed))
    return fed


def affordable(graph: onnx.GraphProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> tuple[int, int]:
    """Return how many mutants, and how many trials for each that is not noticed, the work of one run leaves room for."""
    runs = WORK / max(1.0, sum(NODE + _work(node, values, weights) for node in graph.node))
    number = int(min(MOST, runs / 2))
    return number, int(min(MOST_TRIALS, max(FEWEST_TRIALS, runs / max(1, number))))


def _work(node: onnx.NodeProto, values: Mapping[str, Array], weights: Mapping[str, Array]) -> float:
    result = sum(values[o].size for o in node.output if o in values)
    given = [values.get(n, weights.get(n)) for n in node.input[:2]]
    if node.op_type in ("MatMul", "Gemm") and given[0] is not None and given[0].ndim:
        return float(result) * given[0].shape[-1]
    if node.op_type.startswith("Conv") and len(given) > 1 and given[1] is not None:
        return float(result) * given[1].size / max(1, given[1].shape[0])
    return float(result)
