"""The user's words -> Bound: arguments bound, containers flattened, sizes found, other calls made possible."""

from __future__ import annotations

from typing import Any

import torch

from torchferry import eager, trees
from torchferry.inputs.arguments import readings
from torchferry.inputs.callee import find
from torchferry.inputs.discover import discover
from torchferry.inputs.feeds import Feeder, dtype_name
from torchferry.inputs.flat import is_output
from torchferry.inputs.prepare import Prepared, prepare
from torchferry.inputs.probe import Prober, embedding_uses
from torchferry.inputs.roles import parts as roles_of
from torchferry.inputs.vary import Plan, resized
from torchferry.records import Bound, Case, Fault, Finding, Signature, Step, TensorSpec

CALLS, SECONDS = 150, 20.0


def bind(case: Case) -> Step:
    """Return the model as a plain function of tensors, or what its own example raised."""
    job = case.job
    callee = find(job.model)
    fault: Fault | None = None
    for reading in readings(callee.signature, job.args, job.kwargs):
        prepared = prepare(callee, reading, job.input_names)
        try:
            uses = embedding_uses(eager.fresh(prepared.flat), prepared.tensors)
        except Exception as error:  # the user's model may raise anything on its own example
            fault = fault or Fault.of(error)
            continue
        return _bound(job, callee, prepared, uses)
    assert fault is not None
    return Step("inputs", fault=fault)


def _bound(job: Any, callee: Any, prepared: Prepared, uses: list[Any]) -> Step:
    tables = {i: rows for _, rows, index in uses for i, t in enumerate(prepared.tensors) if t.shape == index.shape and torch.equal(t, index.to(t.dtype))}
    parts = roles_of(prepared.names, prepared.tensors, tables, prepared.numbers)
    prober = Prober(prepared.flat, prepared.tensors, parts, calls=CALLS, seconds=SECONDS)
    found = discover(prober, prepared.names)
    tensors = tuple(resized(t, s, p) for t, s, p in zip(prepared.tensors, found.base, parts, strict=True))
    specs = tuple(TensorSpec(n, dtype_name(t.dtype), s) for n, t, s in zip(prepared.names, tensors, found.shapes, strict=True))
    signature = Signature(specs, found.dims, prepared.fixed)
    sizes = {str(s): n for shape, real in zip(found.shapes, found.base, strict=True) for s, n in zip(shape, real, strict=True) if isinstance(s, str)}
    plan = Plan(prepared.names, tensors, found.shapes, parts, sizes)
    with torch.no_grad():
        answer = eager.fresh(prepared.flat).named_outputs(eager.clone(tensors))
    outputs = [n for n, leaf in answer if is_output(leaf)]
    given = list(job.output_names or ())
    outputs = given + trees.unique(outputs[len(given) :], [*given, *prepared.names])
    dynamic = torch.export.Dim.DYNAMIC
    shapes = tuple({a: dynamic for a, s in enumerate(shape) if isinstance(s, str)} or None for shape in found.shapes)
    bound = Bound(
        prepared.flat,
        tensors,
        signature,
        tuple(outputs),
        shapes if any(shapes) else None,
        plan.vary,
        Feeder(callee, prepared, signature),
        tuple(Feeder(callee, prepared, signature).tensors(*e) for e in job.examples),
        roles={n: p.role for n, p in zip(prepared.names, parts, strict=True)},
    )
    findings: tuple[Finding, ...] = ()
    return Step("inputs", bound, findings=findings, notes=found.notes)
