"""Stage 7 of 8 · repair: Diagnosis -> a better Job, proven by running it again."""

from __future__ import annotations

from torchferry.repair.choose import next_repair
from torchferry.repair.judge import judge

__all__ = ["judge", "next_repair"]
