"""Cut off: eager itself is wrong, by a kernel of torch that cuts sums off at 16 bits, and the file has what they come to.

The claim is shown by running eager again with each quantised product held against the arithmetic (`quantised.audit`): some kernel
must give other numbers than its own integers come to, and the right ones with half its weights; and the file must give what
eager gives once these products are what the arithmetic says. Which numbers these are hangs on the processor, so that its
examples are tests of their own (`tests/capture/test_prepare_quantised.py`).
"""

from __future__ import annotations

from torchferry.quantised.audit import Audited
from torchferry.records import Fault
from torchferry.verify.judge.compare import wrong as differing
from torchferry.verify.judge.excuses.excuse import Excuse, Plea, Proof


def prove(plea: Plea) -> Proof | None:
    """Return which numbers the file has as the arithmetic has them, and eager has not."""
    with Audited() as audit:
        right = plea.bench.sides.eager(plea.args)
    if not audit.found or isinstance(right, Fault) or len(right) != len(plea.got):
        return None
    worst = max(audit.found, key=lambda c: c.off)
    note = f"`{worst.op}` cuts sums off at 16 bits on this processor, and is off by {worst.off:.3g}; the file is not"
    sides = zip(right, plea.got, plea.bench.allowed, plea.open, strict=True)
    found = [o & ~differing(r, g, a) if r.shape == g.shape and r.dtype == g.dtype else o & False for r, g, a, o in sides]
    return Proof(found, note, "eager-cut-off")


EXCUSE = Excuse("cut off: eager's own kernel cuts sums off on this processor", prove, lambda: (), lambda: ())
