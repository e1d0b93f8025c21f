"""Models that are not functions of their inputs: state that calls leave behind, and random numbers; with the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from torchferry import eager
from torchferry.foreign.torch_modules import BUFFERS
from torchferry.foreign.torch_tensors import times_written
from torchferry.records import Fault, Finding, Location
from torchferry.records.findings import RandomOutput, RandomOutputFrozen, StateChanges
from torchferry.verify.arrays import Array
from torchferry.verify.explain import source_lines as source
from torchferry.verify.judge.trial import Bench
from torchferry.verify.run.eager_trace import EagerTrace, record
from torchferry.verify.run.repeated_calls import Character, same
from torchferry.verify.trials.landmarks import source_file


def behaviour(bench: Bench, habits: Character, trace: EagerTrace) -> Iterator[Finding]:
    """Yield a finding where calling the model again gives another answer."""
    names = bench.sides.bound.outputs
    if any(habits.stateful):
        place, what = _mutation(bench)
        outputs = tuple(n for n, s in zip(names, habits.stateful, strict=True) if s)
        yield StateChanges(outputs, what, _code(place), location=place)
    if any(habits.random):
        place = _draw(bench, trace)
        outputs = tuple(n for n, r in zip(names, habits.random, strict=True) if r)
        if _file_is_random(bench, habits):
            yield RandomOutput(outputs, location=place)
        else:
            yield RandomOutputFrozen(outputs, bool(bench.sides.bound.module.training), _code(place), location=place)


def _code(place: Location | None) -> str:
    return source.text(place.file, place.line) if place else ""


def _mutation(bench: Bench) -> tuple[Location | None, str]:
    """Return the line that changes the module's state, and the name of what it changes."""
    module = eager.fresh(bench.sides.bound.module)
    owned = {id(t): n for n, t in [*module.named_buffers(), *module.named_parameters()]}
    before = _attributes(module)
    trace = record(module, bench.sides.bound.args, prefix=bench.sides.bound.prefix)
    prefix = bench.sides.bound.prefix
    for note in trace.notes:
        if note.writes and note.reads and note.reads[0] in owned:
            return note.location, owned[note.reads[0]].removeprefix(prefix)
    for (owner, name), value in _attributes(module).items():
        if before.get((owner, name)) != value:
            part = module.get_submodule(owner)
            file = source_file(type(part))
            line = source.attribute_line(file, name) if file else None
            path = f"{owner}.{name}".removeprefix(prefix).removeprefix(prefix.rstrip(".")).lstrip(".")
            return Location(file, line, owner.removeprefix(prefix.rstrip(".")).lstrip(".") or None), path
    return None, ""


def _attributes(module: torch.nn.Module) -> Mapping[tuple[str, str], object]:
    """Return what every part of the module holds, in a form that shows any change."""
    held: dict[tuple[str, str], object] = {}
    for owner, part in module.named_modules():
        for name, value in vars(part).items():
            if name == BUFFERS:
                held.update({(owner, n): _trace(b) for n, b in value.items()})
            elif not name.startswith("_"):
                held[owner, name] = _trace(value)
    return held


def _trace(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return ("tensor", id(value), times_written(value))
    if isinstance(value, list | tuple | dict | set):
        return (type(value).__name__, len(value))
    return value if isinstance(value, int | float | str | bool | type(None)) else id(value)


def _draw(bench: Bench, trace: EagerTrace) -> Location | None:
    """Return the line that draws: an op that takes torch's random numbers, else where two seeds part ways."""
    drawing = next((n for n in trace.notes if n.draws), None)
    if drawing is not None:
        return drawing.location
    bound = bench.sides.bound
    one, two = (record(eager.fresh(bound.module), bound.args, keep=True, prefix=bound.prefix, seed=s) for s in (0, 1))
    for a, b in zip(one.notes, two.notes, strict=False):
        if a.location != b.location or not all(same(x, y) for x, y in zip(a.values, b.values, strict=False)):
            return a.location
    return None


def _file_is_random(bench: Bench, habits: Character) -> bool:
    """Return whether the file, too, gives another answer every time, for every output that is random in eager."""
    runs = [bench.sides.run(bench.sides.bound.args) for _ in range(2)]
    if any(isinstance(r, Fault) for r in runs):
        return False
    one, two = (r for r in runs if not isinstance(r, Fault))
    return all(_unlike(a, b) for a, b, r in zip(one, two, habits.random, strict=False) if r)


def _unlike(one: Array, two: Array) -> bool:
    return not same(one, two)
