"""Which opset and IR each onnxruntime release takes, and what a user's `target` therefore means.

The table (`kernels.json`) was measured with the wheels themselves: the last value that each accepts, and its kernels.
The installed runtime is asked instead (`ort.limits`), so that a release newer than the table works too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torchferry.errors import UsageError
from torchferry.foreign import onnxruntime as ort
from torchferry.releases import kernels
from torchferry.releases.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Target:
    """What a file must load in: a runtime release (None: only an opset was named), its newest opset and IR version."""

    release: str | None
    opset: int
    ir: int
    ml: int = 5  # newest ai.onnx.ml
    installed: bool = False

    def __str__(self) -> str:
        return f"onnxruntime {self.release}" if self.release else f"opset {self.opset}"

    @property
    def kernels(self) -> Mapping[tuple[str, str], tuple[Kernel, ...]] | None:
        """What the release implements, from the table; None for the installed one, which is asked, and for a bare opset."""
        if self.installed or self.release is None:
            return None
        return kernels.kernels(self.minor)

    @property
    def minor(self) -> int:
        """The release's minor number: 17 for onnxruntime 1.17; 0 where only an opset was named."""
        return int(self.release.split(".")[1]) if self.release else 0


# The IR version that came with each opset: what an opset alone implies (onnx's own release table).
IR_OF_OPSET = {
    9: 4,
    10: 5,
    11: 6,
    12: 7,
    13: 7,
    14: 7,
    15: 8,
    16: 8,
    17: 8,
    18: 8,
    19: 9,
    20: 9,
    21: 10,
    22: 10,
    23: 11,
    24: 11,
    25: 12,
}

LOWEST_OPSET = 7  # older ones have no kernels in any runtime of the table


def parse(target: str | None) -> Target:
    """Return what `target` means: None or "onnxruntime" (the installed one), "onnxruntime==1.17", "opset 15"."""
    text = (target or "onnxruntime").strip().lower()
    if match := re.fullmatch(r"opset[ =]*(\d+)", text):
        return _opset(int(match[1]))
    match = re.fullmatch(r"(?:onnxruntime|ort)(?:\s*==\s*|\s+)?v?((\d+)\.(\d+)(?:\.\d+|\.\*)?)?", text)
    if match is None:
        raise UsageError(f"target `{target}` is not understood; write `onnxruntime`, `onnxruntime==1.17` or `opset 15`")
    if match[1] is None or _same_release(match[1], ort.version()):
        ir, opset = ort.limits()
        return Target(ort.version(), opset, ir, installed=True)
    measured = kernels.limits()
    if int(match[2]) != 1 or int(match[3]) not in measured:
        known = f"1.{min(measured)} to 1.{max(measured)}"
        raise UsageError(f"onnxruntime {match[1]} is not in our table of releases ({known}); name one of these, or an opset")
    opset, ir, ml = measured[int(match[3])]
    return Target(match[1], opset, ir, ml)


def _opset(opset: int) -> Target:
    newest = ort.limits()
    if not LOWEST_OPSET <= opset <= newest[1]:
        raise UsageError(f"opset {opset} is not one that onnxruntime {ort.version()} takes ({LOWEST_OPSET} to {newest[1]})")
    return Target(None, opset, newest[0])


def _same_release(asked: str, installed: str) -> bool:
    """Whether "1.31" or "1.31.1" names the installed release."""
    parts = asked.removesuffix(".*").split(".")
    return installed.split(".")[: len(parts)] == parts
