"""The innocent reasons for a difference, a file each: a claim, and the proof that it needs.

They are asked in this order: those that cost little first.
"""

from torchferry.verify.judge.excuses import (
    beyond_range,
    cut_off,
    float64_truth,
    last_bits,
    padding,
    rounding,
    singular,
    step_by_step,
    undetermined,
    unsorted,
)
from torchferry.verify.judge.excuses.excuse import Excuse

EXCUSES: tuple[Excuse, ...] = (
    cut_off.EXCUSE,
    unsorted.EXCUSE,
    float64_truth.EXCUSE,
    rounding.EXCUSE,
    padding.EXCUSE,
    step_by_step.EXCUSE,
    undetermined.EXCUSE,
    singular.EXCUSE,
    last_bits.EXCUSE,
    beyond_range.EXCUSE,
)
# For a file that was shown to be wrong: whether rounding explains some more of it changes nothing.
CHEAP: tuple[Excuse, ...] = (cut_off.EXCUSE, padding.EXCUSE, last_bits.EXCUSE, beyond_range.EXCUSE)
