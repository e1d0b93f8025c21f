"""NUM040: eager itself is wrong, for want of bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from torchferry.catalogue.numerics.wording import diagnosis, output
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class EagerCutsSumsOff(Rule):
    """PyTorch's own kernel cuts sums off on this processor.

    ## What happened
    Without VNNI, the kernels that multiply uint8 by int8 add pairs of products in 16 bits and cut the sum off there: 255 * 127
    twice is 64770, and comes out as 32767. So the quantised model itself computes other numbers on this processor than on one
    with VNNI, wherever large activations meet large weights. The file computes what the integers come to, on every processor.
    Trials where that is the whole difference count neither for the file nor against it.

    How it is known: the kernel is held against the arithmetic on the very integers that it was given, and with half the
    weights, where no sum can leave 16 bits, it gives what the arithmetic says.

    ## Do instead
    Nothing for the file. To have the PyTorch model right too, quantise with activations of 7 bits (`reduce_range=True`, the
    default of `get_default_qconfig("fbgemm")`) calibrated on all that they will see, or run it where there is VNNI.
    `torchferry doctor` says what this processor has.
    """

    code, stage, severity, since = "NUM040", "verify", "warning", "0.2"

    def premise(self) -> AbstractContextManager[Any]:
        from torchferry.quantised.audit import SixteenBits

        return SixteenBits()

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.EagerCutOff):
            seen = finding.seen
            yield diagnosis(
                self.code,
                finding,
                f"PyTorch, not the file, is wrong at {output(seen)}: {seen.note}",
                "nothing to do for the file; `reduce_range=True` in the qconfig keeps PyTorch's own sums small enough",
            )


def bad() -> Job:
    """A quantised layer of the largest weights; the activations may be as large as they like."""
    return _compared(127)


def good() -> Job:
    """With weights of up to 64 no pair of products leaves 16 bits."""
    return _compared(64)


def _compared(weight: int) -> Job:
    import tempfile
    from pathlib import Path

    import onnx
    import torch

    from torchferry.foreign.torch_tensors import quantised_tensor

    class Quantised(torch.nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.full((2, 8), weight, dtype=torch.int8)
            self.packed = torch.ops.quantized.linear_prepack(quantised_tensor(whole, 1.0, 0), None)

        def forward(self, x):
            stored = torch.quantize_per_tensor(x, 1.0, 0, torch.quint8)
            return torch.ops.quantized.linear(stored, self.packed, 1024.0, 0).dequantize()

    row = ", ".join([str(weight)] * 16)
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 8] x) => (float[N, 2] y)
        <float one = {{1}}, float top = {{255}}, uint8 zero = {{0}}, float step = {{1024}}, float[8, 2] w = {{{row}}}> {{
            missing = IsNaN (x)  known = Where (missing, top, x)
            stored = QuantizeLinear (known, one, zero)  real = DequantizeLinear (stored, one, zero)
            sums = MatMul (real, w)
            rounded = QuantizeLinear (sums, step, zero)  y = DequantizeLinear (rounded, step, zero)
        }}"""
    path = Path(tempfile.mkdtemp()) / "quantised.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return Job(Quantised(), (torch.linspace(1, 255, 16).reshape(2, 8),), onnx=path)
