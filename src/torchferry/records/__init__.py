"""The frozen records that pass between stages; nothing in here imports torch or onnx.

    Job --inputs--> Bound --capture--> Captured --translate--> Translated --check--> Checked --verify--> Verified
    and, where the file completes a directory that generates, --generate--> Generated

Each stage answers with a `Step`. The steps of one pass over the pipeline, with the diagnoses drawn
from them, are a `Case`; the cases that the repair loop went through are a `History`.
A fault in the user's model is a value in here (`Fault`, `Finding`), never an exception.
"""

from torchferry.records.answers import Attempt, Bound, Captured, Checked, Guard, Translated
from torchferry.records.case import GUESSED, SAFETY_ORDER, Case, Diagnosis, History, Remedy, Repair, Safety, Severity, Step
from torchferry.records.edits import Edit, Facts
from torchferry.records.evidence import (
    FAILING,
    SHOWING,
    Coverage,
    Difference,
    Generated,
    Outcome,
    Padding,
    Trial,
    Verified,
    ranges_shown,
    sizes_shown,
)
from torchferry.records.faults import Fault, Frame, Location
from torchferry.records.finding import Finding
from torchferry.records.job import Budget, Call, Generation, Job, Layout, Tolerance
from torchferry.records.signature import Dim, Signature, Size, TensorSpec
from torchferry.records.stages import STAGES, Stage
