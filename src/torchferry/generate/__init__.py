"""Stage 6 of 9 · generate: Verified -> Generated, for a file that completes a directory which generates."""

from __future__ import annotations

from torchferry.generate.stage import generate

__all__ = ["generate"]
