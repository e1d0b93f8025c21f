"""python -m torchferry: the same as the `torchferry` command."""

from __future__ import annotations

import sys

from torchferry.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
