"""From a failing trial to the culprit: the user's line, the op, the module, the ONNX node, and the kind of cause.

Three clues, in this order: guards that the trial breaks; eager's op tape at the example and at the failing input, whose
values are looked for inside the file; and the source around the line, for the `if` or the number behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchferry import eager, guards
from torchferry.records import Fault, Guard, Location
from torchferry.verify import source
from torchferry.verify.arrays import Array
from torchferry.verify.fingerprint import Index
from torchferry.verify.inside import Inside, opened
from torchferry.verify.judge import Bench, Judged
from torchferry.verify.oracle import same
from torchferry.verify.provenance import place_of_node
from torchferry.verify.tape import Note, Tape, record


@dataclass(frozen=True, slots=True)
class Culprit:
    """Where it goes wrong, and what kind of wrong it is."""

    location: Location
    cause: str  # "guard", "branch-frozen", "loop-unrolled", "size-baked", "value-baked", "op-semantics"
    guard: str = ""


def locate(bench: Bench, failing: Judged, conditions: Sequence[Guard]) -> Culprit | None:
    """Return the culprit of a failing trial, or None when nothing points anywhere."""
    if (broken := _broken_guard(failing, conditions)) is not None:
        return Culprit(broken.location or Location(), "guard", broken.text)
    bound = bench.sides.bound
    right, wrong = (
        record(eager.fresh(bound.module), args, keep=True, prefix=bound.prefix, seed=0) for args in (bound.args, failing.args)
    )
    with opened(bench.sides) as inside:
        if isinstance(inside, Fault):
            return _by_flow(right, wrong, failing, bench)
        look = _refused if failing.fault else _differing
        return look(bench, failing, inside, right, wrong)


def _broken_guard(failing: Judged, conditions: Sequence[Guard]) -> Guard | None:
    return next((g for g in conditions if guards.holds(g.text, dict(failing.trial.sizes)) is False), None)


def _differing(bench: Bench, failing: Judged, inside: Inside, right: Tape, wrong: Tape) -> Culprit | None:
    there, here = inside.values(bench.sides.bound.args), inside.values(failing.args)
    if isinstance(there, Fault) or isinstance(here, Fault):
        return _by_flow(right, wrong, failing, bench)
    before, after = Index(there), Index(here)
    parting = _parting(right, wrong)
    is_example = failing.args is bench.sides.bound.args
    if not is_example:
        for n in range(parting):
            names = _names(before, right.notes[n])
            if names and not _names(after, wrong.notes[n]):
                found = _at(wrong.notes[n], inside, names, failing, bench)
                return replace(found, cause="constant-dropped") if _dropped(before, right, n, names) else found
        if parting < max(len(right.notes), len(wrong.notes)):
            return _by_flow(right, wrong, failing, bench)
    return _after_the_last_match(bench, failing, inside, wrong, after)


def _after_the_last_match(bench: Bench, failing: Judged, inside: Inside, wrong: Tape, after: Index) -> Culprit | None:
    """Return the op after the last one whose value is in the file, among those whose values depend on the inputs."""
    moving = _moving(bench, failing, wrong)
    last = max((n for n in moving if _names(after, wrong.notes[n])), default=-1)
    beyond = [n for n in moving if n > last]
    # with every value laid open the file is right: nothing is fused any more, and half precision is kept between ops
    half = [n for n in moving if {"float16", "bfloat16"} & set(wrong.notes[n].dtypes)]
    suspects = beyond or half[-1:] or moving[-1:]
    return _at(wrong.notes[suspects[0]], inside, (), failing, bench) if suspects else None


def _moving(bench: Bench, failing: Judged, wrong: Tape) -> list[int]:
    """Return which ops give something else for other inputs; the others are constants and are found everywhere."""
    bound = bench.sides.bound
    try:
        other = bound.vary(dict(failing.plan.sizes), "random", failing.plan.seed + 17)
    except ValueError:
        return list(range(len(wrong.notes)))
    tape = record(eager.fresh(bound.module), other, keep=True, prefix=bound.prefix)
    alike = _parting(wrong, tape)
    notes = zip(wrong.notes[:alike], tape.notes[:alike], strict=True)
    still = {n for n, (a, b) in enumerate(notes) if all(same(x, y) for x, y in zip(a.values, b.values, strict=True))}
    return [n for n in range(len(wrong.notes)) if n not in still]


def _dropped(before: Index, right: Tape, n: int, names: Sequence[str]) -> bool:
    """Return whether an op with a constant left no value of its own in the file: it stands for what went into it."""
    if n == 0 or right.notes[n].location.op not in ("add", "sub", "mul", "div", "rsub"):
        return False
    return any(set(_names(before, earlier)) >= set(names) for earlier in right.notes[max(0, n - 3) : n])


def _refused(bench: Bench, failing: Judged, inside: Inside, right: Tape, wrong: Tape) -> Culprit | None:
    """Return the culprit of a run that onnxruntime broke off: a parting of ways, else the node that it names."""
    if (flow := _by_flow(right, wrong, failing, bench)) is not None:
        return flow
    named = re.search(r"Name:'([^']*)'", failing.fault.text if failing.fault else "")
    node = next((n for n in inside.model.graph.node if named and n.name == named[1]), None)
    if node is None:
        return None
    place = place_of_node(node, bench.sides.file.provenance)
    if place.line is None:
        there = inside.values(bench.sides.bound.args)
        place = place if isinstance(there, Fault) else _by_value(node.output[0], there, right) or place
    return Culprit(_origin(replace(place, onnx_node=node.name), failing, bench), _cause(failing, bench))


def _by_value(name: str, values: dict[str, Array], tape: Tape) -> Location | None:
    if name not in values:
        return None
    index = Index({name: values[name]})
    return next((n.location for n in tape.notes if _names(index, n)), None)


def _by_flow(right: Tape, wrong: Tape, failing: Judged, bench: Bench) -> Culprit | None:
    """Return the `if` or loop at which eager went another way than with the example, or None if it did not."""
    n = _parting(right, wrong)
    if n >= max(len(right.notes), len(wrong.notes)):
        return None
    one = right.notes[n] if n < len(right.notes) else right.notes[-1]
    two = wrong.notes[n] if n < len(wrong.notes) else wrong.notes[-1] if wrong.notes else one
    where = two.location if two.location.file else one.location
    if where.file is None or where.line is None:
        return None
    other = one.location.line if one.location.file == where.file and one.location.line else where.line
    found = source.branch(where.file, where.line, other)
    if found is None:
        return Culprit(_origin(where, failing, bench), _cause(failing, bench))
    return Culprit(replace(where, line=found[0]), "branch-frozen" if found[1] == "branch" else "loop-unrolled")


def _parting(right: Tape, wrong: Tape) -> int:
    """Return how many ops both tapes have in common before they go different ways."""
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


def _at(note: Note, inside: Inside, names: Sequence[str], failing: Judged, bench: Bench) -> Culprit:
    node = inside.node_of(names[0]) if names else None
    place = replace(note.location, onnx_node=node.name or node.op_type if node else None)
    return Culprit(_origin(place, failing, bench), _cause(failing, bench))


def _origin(place: Location, failing: Judged, bench: Bench) -> Location:
    """Return the line where a number came from that was fixed at export, where sizes alone make the trial fail."""
    if place.file is None or place.line is None or not _resized(failing, bench):
        return place
    return replace(place, line=source.number_origin(place.file, place.line))


def _cause(failing: Judged, bench: Bench) -> str:
    return "size-baked" if _resized(failing, bench) else "op-semantics"


def _resized(failing: Judged, bench: Bench) -> bool:
    return any(failing.trial.sizes.get(n) != size for n, size in bench.sizes.items())
