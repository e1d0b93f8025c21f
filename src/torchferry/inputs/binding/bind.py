"""The user's words -> Bound: arguments bound, containers flattened, sizes found, other calls made possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchferry import eager
from torchferry.edits.inputs import BindByName, Narrow
from torchferry.errors import UsageError, did_you_mean
from torchferry.inputs.binding import asked as asking
from torchferry.inputs.binding import examples as further
from torchferry.inputs.binding import file_from_elsewhere, misbound, saved_program, trees
from torchferry.inputs.binding.arguments import Reading, by_name, positional_names, readings
from torchferry.inputs.binding.callee import Callee, find
from torchferry.inputs.binding.feeds import Feeder, dtype_name
from torchferry.inputs.binding.flat import is_output
from torchferry.inputs.binding.notices import failed_example, nothing_to_give, notices
from torchferry.inputs.binding.reading import Prepared, prepare
from torchferry.inputs.sizes.discover import FoundSizes, discover, nothing_moves, within
from torchferry.inputs.sizes.narrowed import CannotNarrow, narrowed
from torchferry.inputs.sizes.probing import Observed, Prober, observe
from torchferry.inputs.values import domain
from torchferry.inputs.values.accepted import accepted
from torchferry.inputs.values.roles import InputRole, pointing
from torchferry.inputs.values.roles import parts as roles_of
from torchferry.inputs.values.vary import CallPlan, resized
from torchferry.records import Bound, Case, Dim, Fault, Finding, Job, Location, Signature, Step, TensorSpec
from torchferry.records.findings import ExampleDoesNotFit, RangeBeyondModel

CALLS = 400  # of the eager model at most, to find out which sizes move
PATIENCE = 300  # times as long as the first call took, but at least; calls, not seconds, are to end a search
SHORTEST, LONGEST = 60.0, 300.0  # so many seconds, and no more than so many


@dataclass(frozen=True, slots=True)
class Called:
    """A reading that the model took: made ready, with what its call showed."""

    callee: Callee
    prepared: Prepared
    observed: Observed
    findings: tuple[Finding, ...] = ()


def bind(case: Case) -> Step:
    """Return the model as a plain function of tensors, or what its own example raised."""
    job = case.job
    _check_ranges(job.ranges)
    model = saved_program.loaded(Path(job.model), trust=job.trust) if isinstance(job.model, str | Path) else job.model
    if isinstance(model, Step):
        return model
    called = _called(job, find(model))
    if isinstance(called, Step):
        return called
    if (nothing := nothing_to_give(called.callee, called.observed)) is not None:
        return Step("inputs", fault=Fault("NoOutput", "the model returns no tensor"), findings=(*called.findings, nothing))
    asked = _asked(job, called)
    outputs = _output_names(job, called, asked)
    if job.onnx is not None:
        matched = file_from_elsewhere.match(job.onnx, called.callee, called.prepared)
        if matched.other:
            words = "; ".join(f.words for f in matched.other)
            return Step("inputs", fault=Fault("FileMismatch", words), findings=(*called.findings, *matched.other))
        called = replace(called, prepared=matched.prepared, findings=(*called.findings, *matched.lacking))
        asked = matched.asked
        outputs = file_from_elsewhere.output_names(outputs, matched.outputs)
    prepared = _renamed(called, asked.inputs)
    noticed = (*called.findings, *notices(called.callee, prepared, called.observed))
    parts = domain.within_domain(_parts(called), prepared.names, prepared.tensors, job.domain)
    first = _signature(prepared, nothing_moves(prepared.tensors))
    if misfits := further.misfits(Feeder(called.callee, prepared, first), job.examples):
        return _unfit(noticed, misfits)
    try:
        found, findings = _sizes(job, called, parts, asked)
    except CannotNarrow as error:
        return Step("inputs", fault=Fault.of(error))
    for axis, size in found.pointing:
        parts = pointing(parts, axis, size)
    feeder = Feeder(called.callee, prepared, _signature(prepared, found))
    if misfits := further.misfits(feeder, job.examples, sizes=True):
        return _unfit((*noticed, *findings), misfits)
    others = tuple(feeder.tensors(args, kwargs) for args, kwargs in job.examples)
    bound = _bound(job, prepared, found, feeder, parts=parts, outputs=outputs, others=others)
    return Step("inputs", bound, findings=(*noticed, *findings), notes=(*found.notes, *domain.told(job.domain)))


def _unfit(noticed: tuple[Finding, ...], misfits: tuple[ExampleDoesNotFit, ...]) -> Step:
    """Return the answer where the user's own examples do not fit one file: nothing that comes later could mend that."""
    return Step("inputs", fault=Fault("ExampleMismatch", misfits[0].words), findings=(*noticed, *misfits))


# --- which reading of the arguments -------------------------------------------------------------------


def _called(job: Job, callee: Callee) -> Called | Step:
    """Return the first reading that the model takes, or the fault of the likeliest one."""
    args = callee.program.example_inputs[0] if callee.program is not None and not job.args and not job.kwargs else job.args
    possible = readings(callee.signature, args, job.kwargs)
    if edits := job.edits_for(BindByName):
        possible = _by_edit(callee, possible, list(edits[-1].names))
    failure: tuple[Fault, Reading] | None = None
    for reading in possible:
        prepared = _prepared(job, callee, reading)
        try:
            observed = observe(eager.fresh(prepared.flat), prepared.tensors)
        except Exception as error:  # the user's model may raise anything on its own example
            failure = failure or (Fault.of(error), reading)
            continue
        findings = [] if edits else list(misbound.contradicting_names(callee, reading, job.input_names))
        return Called(callee, prepared, observed, (*findings, *misbound.swapped(prepared, callee.signature)))
    assert failure is not None
    fault, reading = failure
    explained = (
        *misbound.other_readings(callee, reading, job.input_names),
        failed_example(callee, _prepared(job, callee, reading)),
    )
    return Step("inputs", fault=fault, findings=explained)


def _prepared(job: Job, callee: Callee, reading: Reading) -> Prepared:
    prepared = prepare(callee, reading, job.input_names)
    varying: dict[str, type] = dict.fromkeys(asking.moving_numbers(job.dynamic_shapes, _by_parameter(callee, reading)), bool)
    if job.examples:
        varying |= further.varying_numbers(Feeder(callee, prepared, Signature(())), job.examples)
    return prepare(callee, reading, job.input_names, varying) if varying else prepared


def _by_parameter(callee: Callee, reading: Reading) -> dict[str, Any]:
    """Return the arguments of a call by the names of their parameters."""
    return {**dict(zip(positional_names(callee.signature, len(reading.args)), reading.args, strict=True)), **reading.kwargs}


def _by_edit(callee: Callee, possible: list[Reading], names: list[str]) -> list[Reading]:
    moved = [by_name(callee.signature, reading, names) for reading in possible]
    return [reading for reading in moved if reading is not None] or possible


# --- which sizes move -----------------------------------------------------------------------------------


def _parts(called: Called) -> tuple[InputRole, ...]:
    tensors = called.prepared.tensors
    tables = {
        i: rows
        for _, rows, index in called.observed.tables
        for i, tensor in enumerate(tensors)
        if tensor.shape == index.shape and not tensor.is_floating_point() and torch.equal(tensor, index.to(tensor.dtype))
    }
    indices: dict[int, int] = {}
    for length, index in called.observed.indexed:
        for i in (i for i, t in enumerate(tensors) if i not in tables and _points(t, index)):
            indices[i] = min(length, indices.get(i, length))
    searched = frozenset(i for i, t in enumerate(tensors) for s in called.observed.searched if _same(t, s))
    return roles_of(called.prepared.keys, tensors, tables, called.prepared.numbers, searched, indices)


def _points(tensor: torch.Tensor, index: torch.Tensor) -> bool:
    """Return whether an input is an index, up to its shape."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool or not tensor.numel():
        return False
    return tensor.numel() == index.numel() and torch.equal(tensor.reshape(-1).long(), index.reshape(-1).long())


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


def _sizes(job: Job, called: Called, parts: tuple[InputRole, ...], asked: asking.Asked) -> tuple[FoundSizes, tuple[Finding, ...]]:
    prepared = called.prepared
    feeder = Feeder(called.callee, prepared, Signature(()))
    must = further.differing_axes(feeder, job.examples)
    if asked.axes == {} and not must:
        return nothing_moves(prepared.tensors), ()
    seconds = min(max(PATIENCE * called.observed.seconds, SHORTEST), LONGEST)
    names = [asked.inputs.get(i, name) for i, name in enumerate(prepared.names)]
    empty = {name for name, (low, _) in job.ranges.items() if low == 0} | further.empty_axes(feeder, job.examples)
    with Prober(prepared.flat, prepared.tensors, parts, calls=CALLS, seconds=seconds) as prober:
        prober.seconds_per_call = called.observed.seconds
        prober.outputs = sum(is_output(leaf) for _, leaf in called.observed.outputs)
        found = discover(prober, names, asked.axes, must, empty, lambda: list(further.taken(feeder, job.examples)))
    example = [tuple(t.shape) for t in prepared.tensors]
    dims, beyond = _with_ranges(job.ranges, found, example)
    found = narrowed(replace(found, dims=dims), job.edits_for(Narrow), names, example)
    return found, (*found.findings, *beyond)


def _asked(job: Job, called: Called) -> asking.Asked:
    prepared = called.prepared
    shapes = tuple(tuple(t.shape) for t in prepared.tensors)
    if job.dynamic_shapes is not None and job.dynamic_axes:
        raise UsageError("give dynamic_shapes or dynamic_axes, not both: they say the same thing")
    if isinstance(job.dynamic_shapes, str):
        if job.dynamic_shapes != "none":
            raise UsageError(f'dynamic_shapes must be a dict, a tuple, None or "none"; got {job.dynamic_shapes!r}')
        return asking.Asked({})
    if job.dynamic_shapes is not None:
        top = _by_parameter(called.callee, prepared.reading)
        return asking.from_shapes(job.dynamic_shapes, top, keys=prepared.keys, names=prepared.names, shapes=shapes)
    if job.dynamic_axes:
        outputs = job.output_names or tuple(n for n, leaf in called.observed.outputs if is_output(leaf))
        return asking.from_axes(job.dynamic_axes, prepared.names, outputs, shapes, named=bool(job.input_names))
    return asking.Asked()


def _check_ranges(ranges: Mapping[str, Any]) -> None:
    """Refuse what is no range before anything is run."""
    for name, span in ranges.items():
        ends = list(span) if isinstance(span, tuple | list) else []
        if len(ends) != 2 or type(ends[0]) is not int or not (ends[1] is None or type(ends[1]) is int):
            raise UsageError(f"ranges['{name}'] must be (low, high), with None for no upper end; got {span!r}")
        if ends[0] < 0 or (ends[1] is not None and ends[0] > ends[1]):
            raise UsageError(f"the range of `{name}` is empty: {ends[0]}..{'' if ends[1] is None else ends[1]}")


def _with_ranges(
    ranges: Mapping[str, tuple[int, int | None]], found: FoundSizes, example: list[tuple[int, ...]]
) -> tuple[tuple[Dim, ...], tuple[Finding, ...]]:
    """Return the dims with the ranges that the user asked for, and a finding for each that the model itself refuses."""
    known = {d.name: d for d in found.dims}
    findings = []
    for name, (low, high) in ranges.items():
        if name not in known:
            there = f"; there are {', '.join(known)}" if known else ": no size moves"
            raise UsageError(f"ranges names `{name}`, which is no dimension that moves{did_you_mean(name, known)}{there}")
        for shape, sizes in zip(found.shapes, example, strict=True):
            for size, number in zip(shape, sizes, strict=True):
                if size == name and (number < low or (high is not None and number > high)):
                    raise UsageError(
                        f"the example has {number} for `{name}`, outside of the range {low}..{'' if high is None else high}"
                    )
        dim = known[name]
        if low < dim.low or (high is not None and dim.high is not None and high > dim.high):
            findings.append(RangeBeyondModel(name, (low, high), (dim.low, dim.high), dim.why, location=Location()))
        known[name] = within(dim, low, high)
    return tuple(known.values()), tuple(findings)


# --- putting it together -----------------------------------------------------------------------------------


def _renamed(called: Called, names: Mapping[int, str]) -> Prepared:
    """Return the example with the names that the keys of dynamic_axes gave to inputs."""
    prepared = called.prepared
    if not names:
        return prepared
    return replace(prepared, names=tuple(names.get(i, n) for i, n in enumerate(prepared.names)))


def _signature(prepared: Prepared, found: FoundSizes) -> Signature:
    specs = tuple(
        TensorSpec(name, dtype_name(tensor.dtype), shape, why)
        for name, tensor, shape, why in zip(prepared.names, prepared.tensors, found.shapes, found.why, strict=True)
    )
    return Signature(specs, found.dims, prepared.fixed, found.conditions)


def _output_names(job: Job, called: Called, asked: asking.Asked) -> tuple[str, ...]:
    inputs = _renamed(called, asked.inputs).names
    own = [asked.outputs.get(i, n) for i, n in enumerate(n for n, leaf in called.observed.outputs if is_output(leaf))]
    given = list(job.output_names or ())
    if len(given) > len(own):
        raise UsageError(
            f"output_names has {len(given)} names ({', '.join(given)}), but the model gives {len(own)}: {', '.join(own)}"
        )
    if both := sorted(set(given) & set(inputs)):
        raise UsageError(f"`{both[0]}` is the name of an input and of an output; give the output another name")
    rest = [f"{n}_out" if n in inputs else n for n in own[len(given) :]]
    return (*given, *trees.unique(rest, [*given, *inputs]))


def _bound(
    job: Job,
    prepared: Prepared,
    found: FoundSizes,
    feeder: Feeder,
    *,
    parts: tuple[InputRole, ...],
    outputs: tuple[str, ...],
    others: tuple[tuple[torch.Tensor, ...], ...],
) -> Bound:
    tensors = tuple(
        t if tuple(t.shape) == s else resized(t, s, p) for t, s, p in zip(prepared.tensors, found.base, parts, strict=True)
    )
    made = domain.made_by(job.domain, feeder, found.shapes, found.sizes)
    plan = accepted(prepared.flat, CallPlan(prepared.names, tensors, found.shapes, parts, found.sizes, made))
    shapes = tuple(_moving(shape) for shape in found.shapes)
    return Bound(
        module=prepared.flat,
        args=tensors,
        signature=feeder.signature,
        outputs=outputs,
        dynamic_shapes=shapes if any(shapes) else None,
        vary=plan.vary,
        feeds=feeder,
        examples=others,
        roles=dict(_roles(prepared, parts)),
        searched=frozenset(i for i, p in enumerate(parts) if p.searched),
    )


def _moving(shape: tuple[Any, ...]) -> dict[int, Any] | None:
    return {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(shape) if isinstance(size, str)} or None


def _roles(prepared: Prepared, parts: tuple[InputRole, ...]) -> Iterator[tuple[str, str]]:
    for name, part in zip(prepared.names, parts, strict=True):
        yield name, part.role if part.named else "flags"
