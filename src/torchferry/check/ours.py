"""The file that was just translated: good ONNX, as asked for, and something that the target can open."""

from __future__ import annotations

import onnx

from torchferry import ort
from torchferry.records import Case, Checked, Finding, Step


def examine(case: Case) -> Step:
    """Return what the file turned out to be, and everything about it that the target will not take."""
    path = case.value("translate").path
    model = onnx.load(str(path), load_external_data=False)
    findings = []
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        findings.append(Finding("not-onnx", facts={"error": str(error)}))
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    value = Checked(opset, model.ir_version, path.stat().st_size, f"onnxruntime {ort.version()}")
    return Step("check", value, findings=tuple(findings))
