"""python -m torchferry: the same as the `torchferry` command; with a script, that script, its errors explained."""

from __future__ import annotations

import sys

from torchferry.cli.main import main
from torchferry.cli.script import is_script, run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]) if is_script(sys.argv[1:]) else main())
