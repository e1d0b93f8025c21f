"""What another release than the installed one lacks: its newest IR version and opset, from the table of releases."""

from __future__ import annotations

import onnx

from torchferry.check import stamp
from torchferry.records import Finding
from torchferry.releases import Target


def lacking(model: onnx.ModelProto, target: Target) -> list[Finding]:
    """Return which of the file's stamps a release of the table cannot read."""
    return [f for f in stamp.findings(model, target) if f.kind != "unused-import"]
