"""The smallest part of a file that shows what is wrong with it: from values that are right to the first that is not.

That a value is the wrong one is proven, not guessed: with eager's value put in its place, the whole file is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from torchferry.files import workspace
from torchferry.records import Case, Fault
from torchferry.records.findings import WrongWhenOptimised
from torchferry.verify.arrays import Array
from torchferry.verify.explain.cause import Culprit
from torchferry.verify.explain.fingerprint import Index
from torchferry.verify.explain.locate import locate
from torchferry.verify.judge.compare import compare
from torchferry.verify.judge.tolerance import loosest
from torchferry.verify.judge.trial import Bench, Judged, differences
from torchferry.verify.run.intermediates import Inside, opened
from torchferry.verify.run.subgraph import between, inputs_of
from torchferry.worker import Worker

MOST_TRIED = 8  # values that may stand for eager's; each needs a session of its own
STEPS_AROUND = 4  # nodes on either side of a value that onnxruntime's optimiser rewrites wrongly


@dataclass(frozen=True, slots=True)
class FilePart:
    """A model that is part of the file, what goes into it in the failing trial, and what should come out."""

    model: onnx.ModelProto
    feeds: dict[str, Array]
    want: dict[str, Array]
    words: str


def smallest(case: Case, bench: Bench, failing: Judged) -> FilePart | None:
    """Return the smallest part that shows the failure; None where none could be proven to."""
    if failing.fault is not None:
        return None
    blamed = next((f.value for f in case.findings(WrongWhenOptimised)), None)
    captured = case.value("capture")
    culprit = None if blamed else locate(bench, failing, captured.guards if captured else ())
    with opened(bench.sides) as inside:
        values = inside if isinstance(inside, Fault) else inside.values(failing.args)
        if isinstance(inside, Fault) or isinstance(values, Fault):
            return None
        whole = onnx.load(str(bench.sides.file.path))
        values = {**values, **bench.sides.feeds(failing.args)}
        if blamed:
            return _rewritten(bench, whole, values, blamed)
        return _wrong_value(bench, failing, inside, whole, values, culprit) if culprit else None


def _wrong_value(
    bench: Bench, failing: Judged, inside: Inside, whole: onnx.ModelProto, values: dict[str, Array], culprit: Culprit
) -> FilePart | None:
    """Return the nodes between values that are right and the one that should be the culprit op's."""
    expected = culprit.expected
    if expected is None:
        return None
    index = Index(values)
    right = {name for note in culprit.before for value in note.values for name in index.find(value)}
    for name in _candidates(inside, values, culprit, right)[:MOST_TRIED]:
        want = expected if name in culprit.stands else expected.reshape(values[name].shape)
        if _right_with(bench, failing, whole, values, name, want):
            given = {n: values[n] for n in (right | set(bench.sides.feeds(failing.args))) - {name} if n in values}
            part = between(whole, given, [name])
            feeds = {i.name: given[i.name] for i in part.graph.input}
            place = f" at {culprit.location}" if str(culprit.location) else ""
            return FilePart(part, feeds, {name: want}, f"`{name}` should be what `{culprit.location.op}` gives{place}")
    return None


def _candidates(inside: Inside, values: dict[str, Array], culprit: Culprit, right: set[str]) -> list[str]:
    """Return the file's values that may stand for the culprit's: those that did at the example, then those of its size."""
    assert culprit.expected is not None
    alike = [
        n for n in inside.names
        if n not in right and values[n].size == culprit.expected.size and values[n].dtype == culprit.expected.dtype
    ]  # fmt: skip
    return list(dict.fromkeys([*culprit.stands, *alike]))


def _right_with(bench: Bench, failing: Judged, whole: onnx.ModelProto, values: dict[str, Array], name: str, want: Array) -> bool:
    """Return whether the file is right with one value replaced by eager's."""
    fed = bench.sides.feeds(failing.args)
    outputs = [o.name for o in whole.graph.output]
    if name in outputs:
        got = [want if o == name else values[o] for o in outputs]
    else:
        rest = between(whole, {**fed, name: want}, outputs)
        feeds = {i.name: {**fed, name: want}[i.name] for i in rest.graph.input}
        answer = _run(bench.sides.worker, rest, feeds, level="none")
        if isinstance(answer, Fault):
            return False
        got = answer
    return not differences(bench, failing.want, [got[i] for i in bench.sides.order])[0]


def _rewritten(bench: Bench, whole: onnx.ModelProto, values: dict[str, Array], blamed: str) -> FilePart | None:
    """Return the few nodes around a value that onnxruntime's optimiser gets wrong."""
    for steps in range(1, 1 + STEPS_AROUND):
        wanted = _after(whole.graph, blamed, steps)
        given = {n: values[n] for n in _before(whole.graph, blamed, steps) if n in values}
        part = between(whole, given, wanted) if wanted else None
        if part is None or any(o not in values for o in wanted) or not part.graph.input:
            continue
        feeds = {i.name: given[i.name] for i in part.graph.input if i.name in given}
        got = _run(bench.sides.worker, part, feeds)
        unlike = not isinstance(got, Fault) and any(
            compare(o, values[o], g, loosest(bench.allowed))[0] for o, g in zip(wanted, got, strict=True)
        )
        if unlike:
            want = {o: values[o] for o in wanted}
            return FilePart(
                part, feeds, want, f"`{blamed}` is rewritten by onnxruntime's optimiser; without it the outputs are right"
            )
    return None


def _after(graph: onnx.GraphProto, value: str, steps: int) -> list[str]:
    reached = {value}
    for _ in range(steps):
        reached |= {o for n in graph.node if reached & set(inputs_of(n)) for o in n.output if o}
    taken = {name for n in graph.node if set(n.output) & reached for name in inputs_of(n)}
    return sorted(reached - taken - {value})


def _before(graph: onnx.GraphProto, value: str, steps: int) -> set[str]:
    inner, weights = {value}, {t.name for t in graph.initializer}
    for _ in range(steps - 1):
        inner |= {name for n in graph.node if inner & set(n.output) for name in inputs_of(n)}
    makers = [n for n in graph.node if inner & set(n.output)]
    return {name for n in makers for name in inputs_of(n)} - weights - inner


def _run(worker: Worker, model: onnx.ModelProto, feeds: dict[str, Array], **options: object) -> list[Array] | Fault:
    with workspace() as folder:
        path = folder / "part.onnx"
        onnx.save(model, str(path))
        key = worker.open(path, **options)
        got = key if isinstance(key, Fault) else worker.run(key, feeds)
        if not isinstance(key, Fault):
            worker.close(key)
    return got
