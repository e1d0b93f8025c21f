"""Stage 8 of 9 · repair: Diagnosis -> a better Job, proven by running it again."""

from __future__ import annotations

from torchferry.repair.choose import next_repair
from torchferry.repair.judge import accept, advance, broken_off, judge, record
from torchferry.repair.narrow import narrowings, wider

__all__ = ["accept", "advance", "broken_off", "judge", "narrowings", "next_repair", "record", "wider"]
