"""From a failing trial to the culprit: the user's line, the op, the module, the ONNX node, and the kind of cause.

Three clues, in this order: guards that the trial breaks; eager's op trace at the example and at the failing input, whose
values are looked for inside the file; and the source around the line, for the `if` or the number behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torchferry import eager, guards
from torchferry.foreign import onnxruntime_messages
from torchferry.records import Fault, Guard, Location
from torchferry.verify.arrays import Array
from torchferry.verify.explain import source_lines as source
from torchferry.verify.explain.cause import Culprit, Scene, settle
from torchferry.verify.explain.fingerprint import Index
from torchferry.verify.explain.provenance import place_of_node
from torchferry.verify.judge.trial import Bench, Judged
from torchferry.verify.run.eager_trace import EagerTrace, Note, record
from torchferry.verify.run.intermediates import Inside, opened
from torchferry.verify.run.repeated_calls import same


def locate(bench: Bench, failing: Judged, conditions: Sequence[Guard]) -> Culprit | None:
    """Return the culprit of a failing trial, or None when nothing points anywhere."""
    if (broken := _broken_guard(failing, conditions)) is not None:
        return Culprit(broken.location or Location(), "guard", broken.text)
    bound = bench.sides.bound
    known = bench.home.args if bench.home is not None else bound.args
    right = record(eager.fresh(bound.module), known, keep=True, prefix=bound.prefix)
    itself = failing.args is known
    wrong = right if itself else record(eager.fresh(bound.module), failing.args, keep=True, prefix=bound.prefix)
    scene = Scene(bench, failing, right, wrong)
    with opened(bench.sides) as inside:
        if isinstance(inside, Fault):
            return _by_flow(scene)
        return _refused(scene, inside) if failing.fault else _differing(scene, inside)


def _broken_guard(failing: Judged, conditions: Sequence[Guard]) -> Guard | None:
    return next((g for g in conditions if guards.holds(g.text, dict(failing.trial.sizes)) is False), None)


def _differing(scene: Scene, inside: Inside) -> Culprit | None:
    here = inside.values(scene.failing.args)
    if isinstance(here, Fault):
        return _by_flow(scene)
    after = Index(here)
    if scene.at_the_example:
        return _first_astray(scene, inside, after)
    there = inside.values(scene.reference)
    if isinstance(there, Fault):
        return _by_flow(scene)
    before, parting, matched = Index(there), _parting(scene.right, scene.wrong), None
    for n in range(parting):
        names = _names(before, scene.right.notes[n])
        if names and not _names(after, scene.wrong.notes[n]):
            return settle(scene, n, matched, _called(inside.node_of(names[0])), names)
        matched = n if names else matched
    if parting < max(len(scene.right.notes), len(scene.wrong.notes)):
        return _by_flow(scene)
    return _first_astray(scene, inside, after)


def _first_astray(scene: Scene, inside: Inside, after: Index) -> Culprit | None:
    """Return the first op from which on nothing that is made of its value is in the file.

    Where a value is merely fused away, something made of it is. Values that do not depend on the inputs are found
    everywhere, and tell nothing.
    """
    notes = scene.wrong.notes
    moving = _moving(scene) or list(range(len(notes)))
    found = {n for n in moving if _names(after, notes[n])}
    alive = _used_by(notes, found)
    astray = [n for n in moving if n not in alive]
    # with every value laid open the file is right: nothing is fused any more, and half precision is kept between ops
    half = [n for n in moving if {"float16", "bfloat16"} & set(notes[n].dtypes)]
    suspects = [n for n in astray if n in _used_by(notes, astray[-1:])] or half[-1:] or moving[-1:]
    if not suspects:
        return None
    last = max((n for n in found if n < suspects[0]), default=None)
    given = [n for n in notes[suspects[0]].takes if n in found] or ([last] if last is not None else [])
    names = [name for n in given for name in _names(after, notes[n])]
    culprit = settle(scene, suspects[0], last, _called(inside.taker_of(names[-1]) if names else None))
    return replace(culprit, cause="precision") if not astray and half else culprit


def _used_by(notes: Sequence[Note], ends: Iterable[int]) -> set[int]:
    """Return the ops whose values went into those of some ops, with these."""
    used = set(ends)
    for n in range(len(notes) - 1, -1, -1):
        if n in used:
            used.update(notes[n].takes)
    return used


def _moving(scene: Scene) -> list[int]:
    """Return which ops give something else for other inputs; the others are constants and are found everywhere."""
    bound, plan, notes = scene.bench.sides.bound, scene.failing.plan, scene.wrong.notes
    try:
        other = bound.vary(dict(plan.sizes), "random", plan.seed + 17)
    except ValueError:
        return list(range(len(notes)))
    trace = record(eager.fresh(bound.module), other, keep=True, prefix=bound.prefix)
    alike = _parting(scene.wrong, trace)
    pairs = zip(notes[:alike], trace.notes[:alike], strict=True)
    still = {n for n, (a, b) in enumerate(pairs) if all(same(x, y) for x, y in zip(a.values, b.values, strict=True))}
    return [n for n in range(len(notes)) if n not in still]


def _refused(scene: Scene, inside: Inside) -> Culprit | None:
    """Return the culprit of a run that onnxruntime broke off: a parting of ways, else the node that it names."""
    if (flow := _by_flow(scene)) is not None:
        return flow
    fault, sides = scene.failing.fault, scene.bench.sides
    named = onnxruntime_messages.node(fault.text) if fault else None
    node = next((n for n in inside.model.graph.node if named and n.name == named[0]), None)
    if node is None:
        return None
    place = place_of_node(node, sides.file.provenance)
    if place.line is None:
        there = inside.values(scene.reference)
        place = place if isinstance(there, Fault) else _by_value(node.output[0], there, scene.right) or place
    return scene.culprit(replace(place, onnx_node=node.name))


def _by_value(name: str, values: dict[str, Array], trace: EagerTrace) -> Location | None:
    if name not in values:
        return None
    index = Index({name: values[name]})
    return next((n.location for n in trace.notes if _names(index, n)), None)


def _by_flow(scene: Scene) -> Culprit | None:
    """Return the `if` or loop at which eager went another way than with the example, or None if it did not."""
    right, wrong = scene.right.notes, scene.wrong.notes
    n = _parting(scene.right, scene.wrong)
    if n >= max(len(right), len(wrong)):
        return None
    one = right[n] if n < len(right) else right[-1]
    two = wrong[n] if n < len(wrong) else wrong[-1] if wrong else one
    where = two.location if two.location.file else one.location
    if where.file is None or where.line is None:
        return None
    other = one.location.line if one.location.file == where.file and one.location.line else where.line
    found = source.branch(where.file, where.line, other)
    if found is None:
        return scene.culprit(where)
    return Culprit(replace(where, line=found[0]), "branch-frozen" if found[1] == "branch" else "loop-unrolled")


def _parting(right: EagerTrace, wrong: EagerTrace) -> int:
    """Return how many ops both traces have in common before they go different ways."""
    n = 0
    for one, two in zip(right.notes, wrong.notes, strict=False):
        if (one.op, one.location.file, one.location.line) != (two.op, two.location.file, two.location.line):
            return n
        n += 1
    return n


def _names(index: Index, note: Note) -> list[str]:
    """Return the file's values that equal one of the op's; a lone 0 or 1 is found everywhere and tells nothing."""
    telling = [v for v in note.values if v.size > 1 or (v.size == 1 and v.item() not in (0, 1))]
    return [name for value in telling for name in index.find(value)]


def _called(node: Any) -> str | None:
    return (node.name or str(node.op_type)) if node is not None else None
