"""RUN008: fed-in-foreign-byte-order."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import FindingRule, Offer, example_file
from torchferry.edits.check import CoerceFeeds
from torchferry.records import Case, Job, findings


class FedInForeignByteOrder(FindingRule[findings.FeedByteOrder]):
    """An input is fed in foreign byte order

    ## What happened
    Arrays from HDF5, FITS or netCDF may be big-endian. ONNX Runtime reads their bytes as if they were native: wrong
    numbers, no error.
    ## Do instead
    Swap first: `x.astype(x.dtype.newbyteorder("="))`.

    ## Repair safety
    Safe: the file stays as it is; `torchferry.InferenceSession` does this to each feed, and says so once.
    """

    code, severity = "RUN008", "error"

    def message(self, finding: findings.FeedByteOrder) -> str:
        return finding.words

    def help(self, finding: findings.FeedByteOrder) -> str:
        return "swap the bytes before feeding: `x.astype(x.dtype.newbyteorder('='))`"

    def offers(self, case: Case, finding: findings.FeedByteOrder) -> Iterator[Offer]:
        yield "let torchferry.InferenceSession coerce the feed", CoerceFeeds(), "safe"


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), ">f4")},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"x": np.ones((2, 3), np.float32)},))


TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y)  { y = Relu (x) }'
