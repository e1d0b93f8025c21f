"""Time the first words of each command, and weigh an installation without torch.

    python benchmarks/startup.py                        # with the packages of this environment
    python benchmarks/startup.py --light "" generation  # new environments with these extras and onnxruntime, nothing else

The best of some runs, wall clock and processor, each in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 3
COMMANDS = {
    "python": ["-c", "pass"],
    "import torchferry": ["-c", "import torchferry"],
    "torchferry --help": ["-m", "torchferry", "--help"],
    "torchferry explain CAP001": ["-m", "torchferry", "explain", "CAP001"],
}


def main() -> None:
    """Print a table for this environment, or for new ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", nargs="*", metavar="EXTRA", help="make an environment with each of these extras")
    asked = parser.parse_args()
    if asked.light is None:
        table(sys.executable)
    for extra in asked.light or ():
        with tempfile.TemporaryDirectory() as room:
            venv.create(room, with_pip=True)
            python = str(Path(room) / "bin" / "python")
            what = f"{ROOT}[{extra}]" if extra else str(ROOT)
            subprocess.run([python, "-m", "pip", "install", "--quiet", what, "onnxruntime"], check=True)
            held = sum(p.stat().st_size for p in Path(room).rglob("*") if p.is_file() and not p.is_symlink())
            print(f"torchferry[{extra}] with onnxruntime: {held / 1e6:.0f} MB")
            table(python)


def table(python: str) -> None:
    """Print how long each command takes."""
    for name, words in COMMANDS.items():
        took = [once([python, *words]) for _ in range(RUNS)]
        print(f"  {name:28} {min(wall for wall, _ in took):6.2f} s, of the processor {min(used for _, used in took):6.2f} s")


def once(command: list[str]) -> tuple[float, float]:
    """Return how long a command takes, and how long it uses the processor."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return after.elapsed - before.elapsed, used


if __name__ == "__main__":
    main()
