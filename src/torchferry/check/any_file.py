"""A file from anywhere: is it a model, will it open, will it run; with the repairs of the Job carried out on a copy first."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from torchferry import releases
from torchferry.check import passes
from torchferry.check.passes import written
from torchferry.check.proof import mends
from torchferry.check.proof.mending import Mending
from torchferry.check.reading import external, graph, metadata, source_line, structure, unpack
from torchferry.check.reading.incoming import Arrival
from torchferry.check.running import run, unchanged
from torchferry.check.running.feeds import Declared
from torchferry.check.running.opening import Opening, explain, refusal
from torchferry.check.support import products
from torchferry.check.support.of_release import lacking
from torchferry.edits.check import CastAround, CoerceFeeds, FlipWeights, GraphPass, ReadAs
from torchferry.records import Case, Checked, Fault, Finding, Job, Location, Step
from torchferry.records.findings import NotAModel, Sniffed, WeightsAreText
from torchferry.releases import Target


def examine(case: Case, arrival: Arrival) -> Step:
    """Return what became of the file of a Job that has no model."""
    job, path, sniffed = case.job, arrival.path, arrival.sniffed
    # the installed runtime is asked for its limits only where something is wrong: that loads it into this process
    target = releases.parse(job.target) if job.target is not None else None
    read = {e.kind for e in job.edits_for(ReadAs)}
    if sniffed.kind == "ort-format":
        return _ort_format(job, arrival, "ort-format" in read)
    data = _contents(path, sniffed, read)
    if isinstance(data, Step):
        return data
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, RecursionError) as error:
        return _no_model(path, Sniffed("damaged", error=str(error)[:200], size=len(data)))
    if not graph.legible(model):
        return _no_model(path, Sniffed("damaged", error="names in it are not text", size=len(data)))
    misnamed = path.suffix == ".ort" and "onnx" not in read
    return _named_wrong(path, model, target) if misnamed else _model(job, arrival, target, model)


def _contents(path: Path, sniffed: Sniffed, read: Container[str]) -> bytes | Step:
    """Return the model's bytes, unwrapped where a repair said so; else the step that says what the file is."""
    if sniffed.kind == "onnx":
        return path.read_bytes()
    if sniffed.kind not in read or sniffed.kind not in unpack.READABLE:
        return _no_model(path, sniffed)
    try:
        return unpack.unpacked(path, sniffed.kind, sniffed.member)
    except Exception as error:  # gzip, zip, protobuf text and JSON each raise their own kinds for damage
        return _no_model(path, Sniffed("damaged", error=f"{type(error).__name__}: {error}"[:200]))


def _no_model(path: Path, sniffed: Sniffed) -> Step:
    finding = NotAModel(path.name, sniffed, location=Location(file=str(path)))
    return Step("check", fault=Fault("NotAModel", f"{path.name} is no ONNX model: {sniffed.kind}"), findings=(finding,))


def _named_wrong(path: Path, model: onnx.ModelProto, target: Target | None) -> Step:
    """Return the answer for an ONNX file whose name says that it is in onnxruntime's own format."""
    finding = NotAModel(path.name, Sniffed("onnx-named-ort"), location=Location(file=str(path)))
    return Step("check", _checked(model, path, str(target or releases.parse(None)), 0), findings=(finding,))


def _model(job: Job, arrival: Arrival, target: Target | None, model: onnx.ModelProto) -> Step:
    path, folder, worker = arrival.path, arrival.folder, arrival.worker
    edits = job.edits_for(GraphPass)
    home, raw = path.parent, onnx.ModelProto()
    raw.CopyFrom(model if edits else raw)
    for edit in edits:
        passes.apply(model, edit)
    hidden = [f for f in external.findings(model, home, path.name) if isinstance(f, WeightsAreText)]
    used = path
    if bool(edits) or bool(job.edits_for(ReadAs)):
        used = folder / job.file_name
        written.write(model, used, home)
        home = folder
    found, reached = _open_and_run(job, raw, model, used, Opening(target, worker, home, used.name, folder))
    found = [*metadata.refused(model), *hidden, *mends.guesses(edits), *[f for f in found if not isinstance(f, WeightsAreText)]]
    runtime = str(target) if target is not None else f"onnxruntime {worker.version()}"
    return Step(
        "check", _checked(model, used, runtime, 0 if hidden else reached), findings=tuple(source_line.located(model, found))
    )


def _open_and_run(
    job: Job, raw: onnx.ModelProto, model: onnx.ModelProto, used: Path, site: Opening
) -> tuple[Sequence[Finding], int]:
    key = site.worker.open(used)
    if isinstance(key, Fault):
        return explain(model, key, site), 0
    if site.asked is not None and not site.asked.installed and (lacks := lacking(model, site.asked)):
        return lacks, 0
    found: list[Finding] = [*structure.duplicate_initializers(model), *products.findings(model, site.home)]
    opened = run.Opened.of(site.worker, key, site.home, site.scratch, model)
    mended = job.onnx is not None and used != job.onnx
    coerce = bool(job.edits_for(CoerceFeeds))
    ran = run.on_given(opened, job.feeds, coerce) if job.feeds else run.on_made(opened, keep=mended)
    if job.onnx is not None and mended and ran.feeds:
        feeds = tuple(f for f, o in zip(ran.feeds, ran.outputs, strict=True) if o is not None)
        mending = Mending(site.worker, site.scratch, job.onnx.parent, site.home, raw, model, key, job.edits_for(GraphPass), feeds)
        precisely = unchanged.PRECISELY if job.edits_for(FlipWeights) else None
        found += unchanged.findings(mending, job.onnx, precisely)
        found += unchanged.overflows(opened, job.edits_for(CastAround), ran.feeds)
    return [*found, *ran.findings], 2 if ran.all_ran else 1


def _ort_format(job: Job, arrival: Arrival, known: bool) -> Step:
    """Return the answer for a file in onnxruntime's own format: it can be opened and run, not looked into."""
    path, worker = arrival.path, arrival.worker
    if path.suffix != ".ort" and not known:
        return _no_model(path, arrival.sniffed)
    key = worker.open(path, config={"session.load_model_format": "ORT"})
    value = Checked(0, 0, path.stat().st_size, f"onnxruntime {worker.version()}", path, 0)
    if isinstance(key, Fault):
        return Step("check", value, findings=(refusal(None, key),))
    declared = tuple(Declared(*d) for d in worker.inputs(key))
    opened = run.Opened(worker, key, path.parent, arrival.folder, None, declared)
    coerce = bool(job.edits_for(CoerceFeeds))
    ran = run.on_given(opened, job.feeds, coerce) if job.feeds else run.on_made(opened, keep=False)
    return Step("check", replace(value, reached=2 if ran.all_ran else 1), findings=ran.findings)


def _checked(model: onnx.ModelProto, used: Path, runtime: str, reached: int) -> Checked:
    return Checked(graph.opset(model) or 0, model.ir_version, used.stat().st_size, runtime, used, reached)
