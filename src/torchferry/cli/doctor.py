"""`torchferry doctor`: what is installed, what the runtime takes, and which versions do not fit together."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata

from torchferry import __version__
from torchferry.cli.screen import console

NEEDED = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "numpy", "ml-dtypes", "sympy", "rich", "typer")
OPTIONAL = ("transformers", "safetensors", "torchvision")
RUNTIMES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")  # all bring the same module
FINE, NOT_FINE = 0, 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """Versions that do not fit, what comes of it, and the command that mends it."""

    what: str
    effect: str
    command: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What the installed onnxruntime takes, found by asking it; `problem` says why it could not be asked."""

    ir: int | None = None
    opset: int | None = None
    problem: str = ""


def examine(form: str) -> int:
    """Write the state of the installation to stdout, and return the exit code."""
    found = versions()
    limits = _limits(found)
    troubles = known_bad(found) + unmet(found) + _cannot_be_asked(limits)
    if form == "json":
        print(
            json.dumps(
                {"versions": found, "onnxruntime takes": asdict(limits), "troubles": [asdict(t) for t in troubles]}, indent=2
            )
        )
    else:
        _write(found, limits, troubles)
    return NOT_FINE if troubles else FINE


def versions() -> dict[str, str | None]:
    """Return the version of each package that matters, None where it is missing. Imports none of them."""
    named = (*NEEDED, *OPTIONAL, *(r for r in RUNTIMES[1:] if _version(r)))
    own: dict[str, str | None] = {"torchferry": __version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in named}


def known_bad(found: Mapping[str, str | None]) -> list[Trouble]:
    """Return the combinations among `found` that are known not to work."""
    troubles = [
        Trouble(f"{name} is not installed", "nothing can be converted without it", f"pip install {name}")
        for name in NEEDED
        if found.get(name) is None and not (name == "onnxruntime" and any(found.get(r) for r in RUNTIMES))
    ]
    runtimes = [r for r in RUNTIMES if found.get(r)]
    if len(runtimes) > 1:
        both, keep = " and ".join(runtimes), runtimes[-1]
        mend = f"pip uninstall -y {' '.join(runtimes)} && pip install {keep}"
        troubles.append(Trouble(f"{both} are both installed", "they overwrite each other's files", mend))
    if _older(found, "onnxruntime", (1, 19)) and not _older(found, "numpy", (2,)):
        what = f"onnxruntime {found['onnxruntime']} was built for numpy 1, and numpy is {found['numpy']}"
        troubles.append(Trouble(what, "it fails on import", 'pip install -U "onnxruntime>=1.19"'))
    if _older(found, "torch", (2, 13)):
        what = f"torch {found['torch']} is older than 2.13"
        troubles.append(Trouble(what, "capture relies on what torch.export could not do before", 'pip install -U "torch>=2.13"'))
    if _older(found, "onnxruntime", (1, 15)):
        what = f"onnxruntime {found['onnxruntime']} is older than 1.15"
        troubles.append(Trouble(what, "it takes no opset that torch writes today", "pip install -U onnxruntime"))
    return troubles


def unmet(found: Mapping[str, str | None]) -> list[Trouble]:
    """Return what the installed packages themselves say they need of each other, and do not have."""
    from packaging.requirements import InvalidRequirement, Requirement

    troubles = []
    for name in (n for n, version in found.items() if version and n not in ("python", "torchferry")):
        for text in metadata.requires(name) or ():
            try:
                need = Requirement(text)
            except InvalidRequirement:
                continue
            have = found.get(need.name.lower().replace("_", "-"))
            if have is None or (need.marker and not need.marker.evaluate({"extra": ""})):
                continue
            if not need.specifier.contains(have, prereleases=True):
                what = f"{name} {found[name]} asks for {need.name}{need.specifier}, and {need.name} is {have}"
                mend = f'pip install "{need.name}{need.specifier}"'
                troubles.append(Trouble(what, "one of the two may fail on import or later", mend))
    return troubles


def _limits(found: Mapping[str, str | None]) -> Limits:
    if not any(found.get(r) for r in RUNTIMES) or not found.get("onnx"):
        return Limits()
    try:
        from torchferry import ort

        ir, opset = ort.limits()
    except Exception as error:  # a broken installation fails in any way it likes; that is what we are here to report
        return Limits(problem=f"{type(error).__name__}: {error}")
    return Limits(ir, opset)


def _cannot_be_asked(limits: Limits) -> list[Trouble]:
    if not limits.problem:
        return []
    return [Trouble("onnxruntime could not be asked what it takes", limits.problem, "pip install --force-reinstall onnxruntime")]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _older(found: Mapping[str, str | None], name: str, than: tuple[int, ...]) -> bool:
    version = found.get(name)
    if version is None:
        return False
    numbers = [int(part) for part in version.split("+")[0].split(".")[: len(than)] if part.isdigit()]
    return tuple(numbers) < than


def _write(found: Mapping[str, str | None], limits: Limits, troubles: list[Trouble]) -> None:
    from rich.text import Text

    out = console(sys.stdout)
    for name, version in found.items():
        missing = "not installed" + ("" if name in NEEDED else " (optional)")
        out.print(Text.assemble(f"  {name:<14}", version if version else (missing, "dim")))
    out.print()
    if limits.opset:
        out.print(f"  onnxruntime takes opset 7 to {limits.opset}, and IR version up to {limits.ir}")
    for trouble in troubles:
        out.print(Text.assemble(("trouble", "bold yellow"), f": {trouble.what}"))
        out.print(f"  {trouble.effect}")
        out.print(Text.assemble("  mend it with: ", (trouble.command, "bold")))
    if not troubles:
        out.print(Text.assemble("  ", ("all of these fit together", "green")))
