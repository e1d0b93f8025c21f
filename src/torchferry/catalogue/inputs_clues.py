"""What the rules of the inputs stage look at: how the model's own example failed, in data."""

from __future__ import annotations

import re

from torchferry.records import Case, Fault, Location, findings
from torchferry.whose_code import is_users

DTYPE = re.compile(
    r"to have one of the following scalar types|expected scalar type|must have the same dtype|have the same dtype, but got"
    r"|tensors used as indices must be|Input type \(\S+\) and (bias|weight) type"
    r"|not implemented for '(Long|Int|Bool|Char|Byte|Short)'"
)
DEVICE = re.compile(
    r"to be on the same device|is not on the expected device|Input type \(torch\.cuda|weight type \(torch\.cuda|on device meta"
)


def failed_call(case: Case) -> Fault | None:
    """Return what the model raised on its own example, unless another reading of the arguments explains it."""
    if case.findings(findings.MisboundArgument) or not case.findings(findings.ExampleFailed):
        return None
    return case.fault("inputs")


def about_missing_cuda(fault: Fault) -> bool:
    """Say whether the model asked for a device that this machine does not have."""
    return any(words in link.text for link in fault.chain() for words in ("not compiled with CUDA", "NVIDIA driver"))


def about_device(fault: Fault | None) -> bool:
    """Whether a fault says that tensors are on different devices."""
    return fault is not None and DEVICE.search(fault.text) is not None


def about_dtype(fault: Fault | None) -> bool:
    """Whether a fault says that a tensor has the wrong dtype."""
    return fault is not None and DTYPE.search(fault.text) is not None and not about_device(fault)


def failed_example(case: Case) -> findings.ExampleFailed:
    """Return what is known of an example that failed, and of the model; empty where none did."""
    return next(iter(case.findings(findings.ExampleFailed)), findings.ExampleFailed(()))


def user_line(fault: Fault) -> Location:
    """Return the innermost line of the user's own code that a fault passed through."""
    for link in reversed(list(fault.chain())):
        for frame in reversed(link.frames):
            if is_users(frame.file):
                return Location(file=frame.file, line=frame.line)
    return Location()


def first_line(fault: Fault) -> str:
    """Return what a fault says, in one line of bearable length."""
    return next((line.strip() for line in fault.text.splitlines() if line.strip()), fault.type_name)[:240]
