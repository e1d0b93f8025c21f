"""What is known of the kinds of values that a trial may have, by name; `inputs/values/ways.py` says how each is made."""

from __future__ import annotations

AS_GIVEN = frozenset({"example", "given"})  # the calls that the user gave
SIMPLEST = frozenset({"example", "random"})
ORDINARY = AS_GIVEN | SIMPLEST
STRANGE = ("-inf", "inf", "nan")  # reported apart: few models are meant to take them
ABSURD = frozenset({"huge", "denormal"})
FAR = frozenset({"powers 1e+09", "times 1e+09", "powers 1e+06", "times 1e+06"})  # out to the ends of what is tried
COUNTING = frozenset({"big", "big-ids"})  # a model may take them for a size
# a model's own result may run out of range at these
EXTREME = frozenset({*STRANGE, *ABSURD, *COUNTING, "scaled", "large", "large-negative", "large-positive", "tiny"})
