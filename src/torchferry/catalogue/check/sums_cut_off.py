"""CHK050: sums-cut-off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file, listed
from torchferry.edits.check import FlipWeights
from torchferry.records import Case, Job, findings


class SumsCutOff(FindingRule[findings.ProductCutOff]):
    """Sums of 8-bit products are cut off on this processor

    ## What happened
    Without VNNI, AVX2 and AVX-512 multiply uint8 by int8 in pairs whose sum is cut off at 16 bits: 255 * 127 twice is 64770,
    and comes out as 32767. ONNX Runtime's fast kernels do so without a word, so the same file gives other numbers here than on
    a processor with VNNI, wherever large activations meet large weights. This processor was asked, by such a product.
    ## Do instead
    Keep weights as uint8 around 128, which every processor multiplies right; or quantise them to 7 bits (`reduce_range=True` in
    `onnxruntime.quantization`); or, for one session, set `session.x64quantprecision` to `1`. `torchferry export --precision int8`
    writes a form that no processor cuts off.
    ## Repair safety
    Safe: 128 is added to the weights and to their zero point, so that every product is of the same numbers. The file as it came
    is run beside it, with ONNX Runtime's own way around such sums.
    """

    code, severity, since = "CHK050", "error", "0.2"
    explains = frozenset({"NUM001", "NUM002"})

    def premise(self) -> AbstractContextManager[Any]:
        from torchferry.saturation.elsewhere import without_vnni

        return without_vnni()

    def message(self, finding: findings.ProductCutOff) -> str:
        nodes = finding.nodes
        count = f"{len(nodes)} products" if len(nodes) > 1 else "a product"
        return f"{count} cut off on this processor, {finding.product}: {listed(nodes, 3)}"

    def help(self, finding: findings.ProductCutOff) -> str:
        if finding.mended:
            return "let 128 be added to the weights and their zero point; or set `session.x64quantprecision` to `1`"
        return "quantise the weights to 7 bits (`reduce_range=True`), or run the file where there is VNNI"

    def evidence(self, finding: findings.ProductCutOff) -> tuple[str, ...]:
        return (
            f"asked for such a product of the largest numbers, onnxruntime gives {finding.got:g} instead of {finding.want:g}",
        )

    def offers(self, case: Case, finding: findings.ProductCutOff) -> Iterator[Offer]:
        nodes = tuple(n for f in self.found(case) if f.mended for n in f.nodes)
        if nodes:
            yield "keep weights 128 higher, with their zero point", FlipWeights(nodes), "safe"


def bad() -> Job:
    """Weights of the full range."""
    return Job(onnx=example_file(TEXT.format("127, -127, 90, 3")))


def good() -> Job:
    """Weights of 7 bits: no pair of these leaves 16 bits."""
    return Job(onnx=example_file(TEXT.format("64, -64, 45, 2")))


TEXT = """<ir_version: 8, opset_import: ["": 18]> g (float[N, 2] x) => (float[N, 2] y) <int8[2, 2] w = {{{0}}}> {{
    stored, scale, zero = DynamicQuantizeLinear (x)
    [product] sums = MatMulInteger (stored, w, zero)
    real = Cast <to: int = 1> (sums)  y = Mul (real, scale)
}}"""
