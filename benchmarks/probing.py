"""How much of an export goes into finding out which sizes move: the inputs stage against the whole.

    python benchmarks/probing.py [mlp cnn gpt2]

Sizes are found from the example alone, and each export runs in a process of its own, as a user's would.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys, warnings
warnings.filterwarnings("ignore")
sys.path.insert(0, sys.argv[1])
import export as models
import torchferry, torchferry.inputs  # what it loads, the capture would load all the same
model, args = getattr(models, sys.argv[2])()
result = torchferry.export(model, args, check=False)
dims = [str(d) for d in result.history.best.value("inputs").signature.dims]
probing = sum(s.seconds for s in result.history.best.steps if s.stage == "inputs")
print(json.dumps({"ok": result.ok, "probing": probing, "whole": result.seconds, "dims": dims}))
"""


def main() -> None:
    """Print a line for each model: seconds of probing, of the whole export, and the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mlp", "cnn", "gpt2"])
    for name in parser.parse_args().models:
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), name]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(ran.stdout.strip().splitlines()[-1])
        share = row["probing"] / row["whole"]
        told = "; ".join(row["dims"])
        print(f"{name:6} probing {row['probing']:6.1f} s of {row['whole']:6.1f} s: {share:5.1%}   {told}", flush=True)


if __name__ == "__main__":
    main()
