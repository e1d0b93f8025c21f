"""What another release than the installed one lacks: versions it does not read, and operators it has no kernel for."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from torchferry.check.reading import graph
from torchferry.check.support import operators, stamp
from torchferry.check.support.kernel_table import KernelTable
from torchferry.check.types.type_inference import infer
from torchferry.records import Finding
from torchferry.records.findings import NoKernel, UnusedImport
from torchferry.releases import Target

NESTED_SINCE = 17  # 1.16 leaves the Softplus inside of a Mish as it is, and fails; measured


def lacking(model: onnx.ModelProto, target: Target) -> Sequence[Finding]:
    """Return what a release of the table will not take: its stamps first; under stamps that it reads, every missing kernel."""
    stamps = [f for f in stamp.findings(model, target) if not isinstance(f, UnusedImport)]
    return stamps or missing_kernels(model, target)


def missing_kernels(model: onnx.ModelProto, target: Target) -> list[NoKernel]:
    """Return every node that a release of the table does not implement; none for the installed one, which is asked instead."""
    if target.kernels is None:
        return []
    flat = graph.flat(model)
    return operators.missing(flat, infer(flat), KernelTable(target.kernels, flat, nested=target.minor >= NESTED_SINCE), target)
