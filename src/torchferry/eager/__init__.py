"""The user's model, called as the user calls it, without leaving a trace on it. The oracle of everything else."""

from torchferry.eager.calls import (
    NoAnswer,
    balanced,
    call,
    call_on_made_input,
    clone,
    kept,
    on_made_input,
    one_at_a_time,
    plainly,
    protected,
    seed_all,
    untouched,
    untouched_by_runs,
    untouched_process,
    untouched_rng,
)
from torchferry.eager.copies import WHOLE_COPY_BYTES, fresh, weight_bytes, whole_copy
from torchferry.eager.state import SavedState

__all__ = [
    "WHOLE_COPY_BYTES",
    "NoAnswer",
    "SavedState",
    "balanced",
    "call",
    "call_on_made_input",
    "clone",
    "fresh",
    "kept",
    "on_made_input",
    "one_at_a_time",
    "plainly",
    "protected",
    "seed_all",
    "untouched",
    "untouched_by_runs",
    "untouched_process",
    "untouched_rng",
    "weight_bytes",
    "whole_copy",
]
