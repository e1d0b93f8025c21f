"""`torchferry verify --certificate`: what was verified when a file was made, read from the file itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from torchferry import certificate
from torchferry.cli.screen import console
from torchferry.errors import UsageError
from torchferry.escape import line, written_json
from torchferry.records import Coverage, Tolerance
from torchferry.report import trial_words
from torchferry.report.words import share


def show(path: Path, form: str) -> int:
    """Write a file's certificate to stdout, and return the exit code: 1 where it does not speak for the file as it is.

    Of a directory, the certificates of all graphs in it.
    """
    files = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"there is no .onnx file in `{path}`")
    found = {file: certificate.read(file) for file in files}
    if form == "json":
        told = [{**f.data, "file": str(p), "objections": f.objections, "changed": bool(f.objections)} for p, f in found.items()]
        print(written_json(told if path.is_dir() else told[0], indent=2))
    else:
        for file, one in found.items():
            _say(file, one)
    return int(any(f.objections for f in found.values()))


def _say(path: Path, found: certificate.FoundCertificate) -> None:
    out = console(sys.stdout)
    if not found.objections:
        out.out(f"`{line(str(path))}` was verified against its model when it was made\n")
    else:
        what = line("; ".join(found.objections))
        since = " since it was certified: nothing below speaks of this file" if found.data and "changed" in what else ""
        out.out(f"`{line(str(path))}` is not certified: {what}{since}\n")
    for label, value in rows(found.data) if found.data else ():
        out.out(f"  {label:<11}{line(value)}")


def _coverage(told: dict[str, Any]) -> Coverage:
    """Return the coverage that a certificate tells of."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return Coverage(**values)


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the certificate as labelled lines."""
    lines = [("input", f"{name}  {dtype} [{', '.join(map(str, shape))}]") for name, (dtype, shape) in found["inputs"].items()]
    lines += [("sizes", words) for words in found["dims"].values()]
    lines += [("together", words) for words in found.get("conditions", ())]
    lines += [("tried", f"{name} = {', '.join(map(str, sizes))}") for name, sizes in found["sizes_tried"].items()]
    lines += [("fixed", f"{name} = {value}") for name, value in found["fixed"].items()]
    lines += [("given up", words) for words in found.get("given_up", ())]
    lines += [("trials", ", ".join(f"{number} {outcome}" for outcome, number in found["trials"].items()))]
    lines += [("values", found["values"])] if "values" in found else []
    lines += [("worst", f"{share(found['worst'])} of what is allowed")]
    lines += [("allowed", trial_words.allowed(Tolerance(**found["tolerance"])))]
    counted = _coverage(found.get("coverage", {}))
    lines += [("shown", words) for words in [trial_words.shown(counted)] if words]
    lines += [("not shown", words) for words in counted.not_shown] + [("left out", words) for words in counted.not_done]
    lines += [("repairs", words) for words in found["repairs"]]
    lines += [("notes", words) for words in found["notes"]]
    lines += [("made with", ", ".join(f"{name} {number}" for name, number in found["versions"].items()))]
    lines += [("on", f"a processor with {', '.join(found['instruction_sets'])}")] if found.get("instruction_sets") else []
    last = ""
    shown = []
    for label, value in lines:
        shown.append(("" if label == last else label, value))
        last = label
    return shown
