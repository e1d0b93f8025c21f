"""RUN015: index-beyond-table."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule, at, example_file, shapes
from torchferry.records import Job, findings


class IndexBeyondTable(FindingRule[findings.IndexOutOfRange]):
    """An index is beyond the end of a table

    ## What happened
    A token id beyond the vocabulary, or a position beyond the position table (the prompt is too long). ONNX Runtime's
    optimiser turns a lookup of counted positions into a slice, which forgives any overrun: then the numbers are wrong
    without an error.
    ## Do instead
    Check tokenizer and model belong together; cut the prompt to the model's length.
    """

    code, severity = "RUN015", "error"

    def message(self, finding: findings.IndexOutOfRange) -> str:
        if demand := _demand(finding):
            return f"the file was verified for fewer sizes than its model takes: {demand}, and it was fed {shapes(finding.fed)}"
        what = (
            f"the value {finding.value} at {list(finding.at)} of the input `{finding.input}`"
            if finding.input
            else f"the position {finding.value}"
        )
        silent = "; ONNX Runtime's GatherToSliceFusion hides this, and the result is wrong" if finding.hidden else ""
        length = "" if finding.input else f" (the length fed is too long: {shapes(finding.fed)})"
        return (
            f"{at(finding)}: {what} is out of range for the table `{finding.table}`, which has "
            f"{finding.rows} rows{length}{silent}"
        )

    def help(self, finding: findings.IndexOutOfRange) -> str:
        if _demand(finding):
            return (
                "feed sizes within that; `torchferry verify --certificate` says what was given up when the file was made, and why"
            )
        if finding.input:
            return f"feed `{finding.input}` values below {finding.rows}; the tokenizer may belong to another model"
        return f"feed at most {finding.rows} positions; to see the error, set disabled_optimizers=['GatherToSliceFusion']"


def _demand(finding: findings.IndexOutOfRange) -> str:
    """Return what a node demands that torchferry puts into a file to keep a range: `length must be 1 to 10`."""
    node = finding.location.onnx_node if finding.location else None
    dim, found, range_ = (node or "").partition("_must_be_")
    return f"`{dim}` must be {range_.replace('_', ' ')}" if found else ""


def bad() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"ids": np.array([[1, 7]])},))


def good() -> Job:
    import numpy as np

    return Job(onnx=example_file(TEXT), feeds=({"ids": np.array([[1, 2]])},))


TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (int64[N, L] ids) => (float[N, L, 2] y) <float[3, '
    "2] w = {1, 2, 3, 4, 5, 6}> { [emb] y = Gather (w, ids) }"
)
