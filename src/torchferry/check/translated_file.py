"""The file that was just translated: good ONNX, as asked for, and something that the target implements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx

from torchferry import releases
from torchferry.check import passes
from torchferry.check.passes import written
from torchferry.check.reading import graph
from torchferry.check.reading.fingerprint import QUANTISED_KEY
from torchferry.check.reading.promises import broken
from torchferry.check.support import operators, products, stamp
from torchferry.check.support.node_probe import NodeProber
from torchferry.check.support.of_release import missing_kernels
from torchferry.check.types.type_inference import infer
from torchferry.edits.check import CheckEdit
from torchferry.records import Case, Checked, Fault, Finding, Location, Step, Translated
from torchferry.records.findings import NoKernel, UnusedImport
from torchferry.releases import Target
from torchferry.worker import Worker

QUANTISED = "its weights are quantised: near the model, not equal to it; torchferry.json has what was measured"


def examine(case: Case) -> Step:
    """Return what the file turned out to be, and everything about it that the target will not take."""
    made = case.answer(Translated)
    target = releases.parse(case.job.target)
    path = _mended(case, made.path)
    model = onnx.load(str(path), load_external_data=False)
    if case.job.onnx is None:  # our own work is held to the letter; a file from elsewhere only has to run
        try:
            onnx.checker.check_model(str(path))
        except onnx.checker.ValidationError as error:
            return Step("check", fault=Fault("NotOnnx", str(error)))
        if words := broken(model, case.value("inputs")):
            return Step("check", fault=Fault("PromiseBroken", "; ".join(words)))
    found = [*_stamps(model, target), *_kernels(case, model, target), *products.findings(model, path.parent)]
    value = Checked(graph.opset(model) or 0, model.ir_version, path.stat().st_size, str(target), path)
    notes = (QUANTISED,) if any(p.key == QUANTISED_KEY for p in model.metadata_props) else ()
    return Step("check", value, findings=tuple(_at_source(f, made) for f in found), notes=notes)


def _mended(case: Case, path: Path) -> Path:
    """Return the file with the job's graph passes carried out: a copy in this attempt's folder; the file itself without any."""
    edits = case.job.edits_for(CheckEdit)
    if not edits or case.job.workspace is None:
        return path
    model = onnx.load(str(path), load_external_data=False)
    for edit in edits:
        passes.apply(model, edit)
    copy = case.job.workspace / case.job.file_name
    written.write(model, copy, path.parent)
    return copy


def _stamps(model: onnx.ModelProto, target: Target) -> list[Finding]:
    return [f for f in stamp.findings(model, target) if not isinstance(f, UnusedImport)]


def _kernels(case: Case, model: onnx.ModelProto, target: Target) -> list[NoKernel]:
    """Return what the target does not implement; for the installed one doubts of its table are settled by asking it."""
    if target.kernels is not None:
        return missing_kernels(model, target)
    flat = graph.flat(model)
    types = infer(flat)
    if not operators.doubtful(flat, types) or case.job.workspace is None:
        return []
    with Worker(60.0) as worker:
        return operators.missing(flat, types, NodeProber(worker, flat, case.job.workspace), target)


def _at_source(finding: Finding, made: Translated) -> Finding:
    """Return a finding with the user's line, where the translation kept it."""
    where = finding.location or Location()
    known = made.provenance.get(where.onnx_node or "")
    if known is None:
        return finding
    return replace(finding, location=replace(known, onnx_node=where.onnx_node, op=where.op))
