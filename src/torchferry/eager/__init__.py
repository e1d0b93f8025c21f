"""The user's model, called as the user calls it, without leaving a trace on it. The oracle of everything else."""

from torchferry.eager.calls import (
    WHOLE_COPY_BYTES,
    NoAnswer,
    balanced,
    call,
    call_on_made_input,
    clone,
    fresh,
    on_made_input,
    one_at_a_time,
    plainly,
    seed_all,
    untouched,
    untouched_rng,
    weight_bytes,
)

__all__ = [
    "WHOLE_COPY_BYTES",
    "NoAnswer",
    "balanced",
    "call",
    "call_on_made_input",
    "clone",
    "fresh",
    "on_made_input",
    "one_at_a_time",
    "plainly",
    "seed_all",
    "untouched",
    "untouched_rng",
    "weight_bytes",
]
