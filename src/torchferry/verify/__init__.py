"""Stage 5 of 9 · verify: Translated -> Verified"""

from __future__ import annotations

from torchferry.verify.stage import verify

__all__ = ["verify"]
