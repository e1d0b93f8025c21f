"""Stage 2 of 9 · capture: Bound -> Captured (an ExportedProgram, the conditions it relies on, and how it was got)."""

from __future__ import annotations

from torchferry.capture.stage import capture

__all__ = ["capture"]
