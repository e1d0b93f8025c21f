"""Whether eager itself is wrong: a kernel of torch's that cuts sums off at 16 bits, where the file computes what they come to.

The claim is shown by running eager again with each quantised product held against the arithmetic (`quantised.audit`): some kernel
must give other numbers than its own integers come to, and the right ones with half its weights; and the file must give what
eager gives once these products are what the arithmetic says.
"""

from __future__ import annotations

from collections.abc import Callable

from torchferry.quantised.audit import Audited
from torchferry.records import Fault
from torchferry.verify.arrays import Array
from torchferry.verify.run.both_sides import Call, Sides


def cut_off(sides: Sides, args: Call, agrees: Callable[[list[Array]], bool]) -> str | None:
    """Return a word on the kernel whose sums are cut off, if that explains the difference; `agrees` compares with the file."""
    with Audited() as audit:
        right = sides.eager(args)
    if not audit.found or isinstance(right, Fault) or not agrees(right):
        return None
    worst = max(audit.found, key=lambda c: c.off)
    return f"`{worst.op}` cuts sums off at 16 bits on this processor, and is off by {worst.off:.3g}; the file is not"
