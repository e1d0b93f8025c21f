"""The steps of the translation in order, and its failures as findings at the user's lines."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from torchferry import releases
from torchferry.edits.inputs import Narrow
from torchferry.edits.translate import InlineCustomOperator, OptimiserOff, TranslateEdit
from torchferry.foreign import torch_onnx
from torchferry.foreign.torch_operators import schema_of
from torchferry.ops import decomposed
from torchferry.ops.passes import apply
from torchferry.ops.passes.axes import count_from_the_front
from torchferry.ops.passes.kernels import widen
from torchferry.ops.passes.rounds import let_scans_be_empty
from torchferry.records import Bound, Captured, Case, Fault, Job, Signature, Step, Translated
from torchferry.records.findings import ComplexOperator, CustomOperator, OperatorRefused, OperatorWithoutOnnx
from torchferry.releases import kernels
from torchferry.translate import names, node_lines, register
from torchferry.translate.existing_file import as_translated
from torchferry.translate.generality import lost
from torchferry.translate.limits import keep_ranges
from torchferry.translate.normalise import dropped_checks, prepare, untranslatable
from torchferry.translate.opset import fit
from torchferry.translate.optimise import inline, optimise
from torchferry.translate.provenance import provenance
from torchferry.translate.save import save
from torchferry.translate.weight_inputs import weights_as_inputs


def translate(case: Case) -> Step:
    """Return the captured program as a file in the workspace, or every operator that stands in the way."""
    if case.job.onnx is not None:
        return as_translated(case.job)
    bound, program = case.answer(Bound), case.answer(Captured).program
    given_here = case.job.translations
    translations = {**decomposed.translations(), **register.translations(), **given_here}
    registry = torch_onnx.registry(translations, decomposed.complex_translations())
    own = {**decomposed.decompositions(), **register.decompositions(), **register.bodies(_inlined(case.job))}
    special = [(_without(table, given_here), applies) for table, applies in decomposed.special_decompositions()]
    ready = prepare(program, registry, _without(own, given_here), special)
    if missing := list(untranslatable(ready, registry)):
        return _missing(missing, bound.prefix)
    if (half := next(filter(_is_half_complex, ready.graph.nodes), None)) is not None:
        reason = "ONNX has no half-precision complex numbers (complex32); cast to float32 before it"
        return _failed(torch_onnx.TranslationFailed(half.name, reason), ready, bound.prefix)
    try:
        model = torch_onnx.build(ready, registry)
    except torch_onnx.TranslationFailed as failed:
        return _failed(failed, ready, bound.prefix)
    notes = (*_checks(program, bound.prefix), *_as_told(program, given_here))
    return replace(_finish(case.job, bound, ready, model), notes=notes)


def _as_told(program: Any, translations: Container[Any]) -> Iterator[str]:
    """Yield the operators that were translated as the caller says."""
    for operator in sorted({node_lines.operator_name(n) for n in program.graph.nodes if n.target in translations}):
        yield f"`{operator}` is translated as custom_translation_table says"


def _checks(program: Any, prefix: str) -> Iterator[str]:
    """Yield the model's own checks of values, which the file cannot make."""
    for node, message in dropped_checks(program):
        yield f"the check `{message}` ({node_lines.location(node, prefix)}) is not in the file: ONNX has none"


def _without(table: Mapping[Any, Any], taken: Container[Any]) -> dict[Any, Any]:
    return {target: function for target, function in table.items() if target not in taken}


def _is_half_complex(node: Any) -> bool:
    return getattr(node.meta.get("val"), "dtype", None) == torch.complex32


def _inlined(job: Job) -> list[str]:
    """Return the custom operators whose own Python body is to be traced."""
    return [edit.operator for edit in job.edits_for(InlineCustomOperator)]


def _finish(job: Job, bound: Bound, program: Any, model: ir.Model) -> Step:
    """Return the graph, optimised, named and fitted to the target, as a file."""
    if job.edits_for(OptimiserOff):
        inline(model)
    else:
        optimise(model)
    target = releases.parse(job.target)
    some = _never_zero(program, bound.signature)
    let_scans_be_empty(model, some)
    widen(model, kernels.kernels(target.minor or max(kernels.limits())))
    settings = apply(model, job.edits_for(TranslateEdit))
    count_from_the_front(model, some)
    if needed := register.libraries(model.opset_imports):
        settings["libraries"] = needed
    names.rename(model, program, bound.signature, bound.outputs, bound.prefix)
    keep_ranges(model, bound.signature, job.edits_for(Narrow))
    cannot = fit(model, target, job.opset, bound.prefix)
    if cannot:
        wanted = f"opset {job.opset or job.target} cannot express the model"
        return Step("translate", fault=Fault("OpsetCannotExpress", wanted), findings=tuple(cannot))
    model.opset_imports.update({d: v for d, v in job.custom_opsets.items() if d in model.opset_imports})
    if job.layout.as_inputs or job.layout.left_out:
        weights_as_inputs(model)
    path = (job.workspace or Path(tempfile.mkdtemp(prefix="torchferry-"))) / job.file_name
    save(model, path, job.layout.beside)
    value = Translated(
        path=path,
        opset=model.opset_imports[""],
        inputs=names.specs(names.required(model.graph)),
        outputs=names.specs(model.graph.outputs),
        provenance=provenance(model, bound.prefix),
        model=model,
        settings=settings,
    )
    return Step("translate", value=value, findings=tuple(lost(path, program, bound, value.provenance)))


def _never_zero(program: Any, signature: Signature) -> set[str]:
    """Return those of torch's symbols that stand for a size which is declared as 1 or more."""
    least = {dim.name: dim.low for dim in signature.dims}
    return {symbol for symbol, name in names.dim_names(program, signature).items() if least.get(name, 0) >= 1}


def _missing(nodes: list[Any], prefix: str) -> Step:
    """Return all operators without a translation at once: nobody wants to hear of them one by one."""
    findings = tuple(_finding(node, prefix) for node in nodes)
    operators = sorted({f.operator for f in findings})
    return Step("translate", fault=Fault("OperatorWithoutOnnx", ", ".join(operators)), findings=findings)


def _finding(node: Any, prefix: str) -> CustomOperator | ComplexOperator | OperatorWithoutOnnx:
    operator, dtype = node_lines.operator_name(node), node_lines.first_dtype(node)
    schema, place = str(schema_of(node.target) or ""), node_lines.location(node, prefix)
    namespace = operator.partition("::")[0]
    if "::" in operator and namespace not in ("aten", "prims", "quantized", "quantized_decomposed"):
        return CustomOperator(operator, schema, register.has_body(operator), location=place)
    if dtype.startswith("complex"):
        return ComplexOperator(operator, dtype, location=place)
    return OperatorWithoutOnnx(operator, schema, dtype, location=place)


def _failed(failed: torch_onnx.TranslationFailed, program: Any, prefix: str) -> Step:
    """Return the node on which a translation gave up, with its reason."""
    node = next((n for n in program.graph.nodes if n.name == failed.node), None)
    findings: tuple[OperatorRefused, ...] = ()
    if node is not None:
        findings = (OperatorRefused(node_lines.operator_name(node), failed.reason, location=node_lines.location(node, prefix)),)
    return Step("translate", fault=Fault.of(failed), findings=findings)
