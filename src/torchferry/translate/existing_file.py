"""An existing file as if we had made it: its names, sizes and opset, read without touching its weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx_ir as ir

from torchferry.edits.translate import TranslateEdit
from torchferry.ops.passes import apply
from torchferry.records import Fault, Job, Step, Translated
from torchferry.translate import names
from torchferry.translate.provenance import provenance
from torchferry.translate.save import save


def as_translated(job: Job) -> Step:
    """Return the job's own file as a Translated; with edits, a changed copy of it in the workspace."""
    assert job.onnx is not None
    path = Path(job.onnx)
    try:
        model = ir.load(path)  # weights beside the file stay there: they are mapped, not read
    except Exception as error:  # not a protobuf, truncated, textproto: anything may come out of a foreign file
        return Step("translate", fault=Fault.of(error))
    edits = job.edits_for(TranslateEdit)
    settings = apply(model, edits)
    if edits:
        path = (job.workspace or Path(tempfile.mkdtemp(prefix="torchferry-"))) / job.file_name
        save(model, path)
    value = Translated(
        path=path,
        opset=model.opset_imports.get("", 0),
        inputs=names.specs(names.required(model.graph)),
        outputs=names.specs(model.graph.outputs),
        provenance=provenance(model, ""),
        model=model,
        settings=settings,
    )
    return Step("translate", value=value)
