"""Commands run as a user runs them (`run`, a process), or in this process where that proves as much (`inside`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCES = str(Path(__file__).parents[2] / "src")


def command(*words: str) -> list[str]:
    """Return the command line of `torchferry WORDS` in this interpreter."""
    return [sys.executable, "-m", "torchferry", *words]


def environment(**more: str) -> Mapping[str, str]:
    """Return an environment with nothing in it that changes the output, and what is given."""
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "GITHUB_ACTIONS", "NO_COLOR", "TORCHFERRY_SUPERVISE")}
    return {**kept, "PYTHONPATH": SOURCES, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1", **more}


def run(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with pipes for stdout and stderr."""
    return subprocess.run(
        command(*words), cwd=cwd, env=environment(**env), capture_output=True, encoding="utf-8", timeout=200, check=False
    )
