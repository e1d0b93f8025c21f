"""`torchferry verify --certificate`: what was verified when a file was made, read from the file itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from torchferry import certificate
from torchferry.cli.screen import console
from torchferry.errors import UsageError
from torchferry.report.words import share


def show(path: Path, form: str) -> int:
    """Write a file's certificate to stdout, and return the exit code: 1 for a file that is no longer the certified one."""
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`")
    found = certificate.read(path)
    if form == "json":
        print(json.dumps(found, indent=2))
        return int(found["changed"])
    since = ", but its graph or its weights have changed since: nothing below speaks of this file" if found["changed"] else ""
    out = console(sys.stdout)
    out.out(f"`{path}` was verified against its model when it was made{since}\n")
    for label, value in rows(found):
        out.out(f"  {label:<11}{value}")
    return int(found["changed"])


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the certificate as labelled lines."""
    allowed = found["tolerance"]
    lines = [("input", f"{name}  {dtype} [{', '.join(map(str, shape))}]") for name, (dtype, shape) in found["inputs"].items()]
    lines += [("sizes", words) for words in found["dims"].values()]
    lines += [("together", words) for words in found.get("conditions", ())]
    lines += [("tried", f"{name} = {', '.join(map(str, sizes))}") for name, sizes in found["sizes_tried"].items()]
    lines += [("fixed", f"{name} = {value}") for name, value in found["fixed"].items()]
    lines += [("given up", words) for words in found.get("given_up", ())]
    lines += [("trials", ", ".join(f"{number} {outcome}" for outcome, number in found["trials"].items()))]
    lines += [("worst", f"{share(found['worst'])} of what is allowed")]
    lines += [("allowed", f"{allowed['atol']:.2g} + {allowed['rtol']:.2g} of the value; {allowed['because']}")]
    lines += [("repairs", words) for words in found["repairs"]]
    lines += [("made with", ", ".join(f"{name} {number}" for name, number in found["versions"].items()))]
    lines += [("on", f"a processor with {', '.join(found['instruction_sets'])}")] if found.get("instruction_sets") else []
    last = ""
    shown = []
    for label, value in lines:
        shown.append(("" if label == last else label, value))
        last = label
    return shown
