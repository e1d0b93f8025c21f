"""How long a text may be: the positions that a config speaks of, if the model does refuse one more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

NAMES = (
    "max_target_positions",
    "max_decoder_position_embeddings",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
)  # in the order that a decoder among them is asked by
MOST_BYTES = 2**29  # of a cache that is made only to see whether the model takes it


def longest(config: Any, grows: Iterable[torch.Tensor], call: Callable[[int], object]) -> int | None:
    """Return how long a text may be, None for no end. `call(n)` asks the model for a token after a past of n.

    grows: what the call makes as long as the past. A table too large for that is computed, as rotary ones are, not learned.
    """
    most = next((n for n in (getattr(config, name, None) for name in NAMES) if isinstance(n, int) and n > 0), None)
    if most is None or sum(t.shape[0] * t.shape[1] * t.shape[3] for t in grows) * most * 4 > MOST_BYTES:
        return None
    try:
        call(most)
    except (IndexError, RuntimeError, ValueError):  # whatever the model's own table does with an index beyond its end
        return most
    return None
