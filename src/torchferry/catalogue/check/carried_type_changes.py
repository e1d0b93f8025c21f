"""CHK040: carried-type-changes."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, at, example_file, node
from torchferry.edits.check import CastCarried
from torchferry.records import Case, Job, findings


class CarriedTypeChanges(FindingRule[findings.CarriedTypesDiffer]):
    """A loop carries a value that changes its type

    ## What happened
    What a Loop or Scan carries from turn to turn has one type. Python's `total = 0` before a loop that adds floats to it,
    or a body that computes in double precision, gives two.
    ## Do instead
    Begin with a value of the right type (`total = 0.0`), or convert at the end of the loop's body.
    ## Repair safety
    Safe: the value is cast as it goes in, or as it comes out of a turn, to the type that loses nothing; to the declared one
    where both are floats.
    """

    code, severity = "CHK040", "error"

    def message(self, finding: findings.CarriedTypesDiffer) -> str:
        return f"{at(finding)} carries `{finding.value}` from turn to turn as {' and '.join(finding.types)}"

    def help(self, finding: findings.CarriedTypesDiffer) -> str:
        return f"cast it to {finding.to} before the loop and at the end of its body"

    def offers(self, case: Case, finding: findings.CarriedTypesDiffer) -> Iterator[Offer]:
        yield f"carry it as {finding.to}", CastCarried(node(finding), finding.index, finding.to), "safe"


def bad() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) {
        n = Constant <value = int64 {2}> ()
        go = Constant <value = bool {1}> ()
        total = Constant <value = int64[3] {0, 0, 0}> ()
        [sum] y = Loop (n, go, total) <body = b (int64 i, bool c, float[3] t) => (bool c2, float[3] t2) {
            c2 = Identity (c)
            t2 = Add (t, x) }> }"""
    return Job(onnx=example_file(text))


def good() -> Job:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) {
        n = Constant <value = int64 {2}> ()
        go = Constant <value = bool {1}> ()
        [sum] y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] t) => (bool c2, float[3] t2) {
            c2 = Identity (c)
            t2 = Add (t, x) }> }"""
    return Job(onnx=example_file(text))
