"""The stages of the pipeline, by name."""

from __future__ import annotations

from typing import Literal

Stage = Literal["inputs", "capture", "translate", "check", "verify", "generate"]
STAGES: tuple[Stage, ...] = ("inputs", "capture", "translate", "check", "verify", "generate")
