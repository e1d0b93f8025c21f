"""`torchferry doctor`: what is installed, what the runtime takes, what the processor has, and what does not fit together."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata

from torchferry import __version__
from torchferry.cli.screen import console
from torchferry.extras import BRINGS
from torchferry.releases.tested import OLDEST, untested

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


@dataclass(frozen=True, slots=True)
class Processor:
    """What this processor has for products of integers, and which of them onnxruntime cuts off on it, found by asking."""

    machine: str
    features: tuple[str, ...] = ()
    asked: int = 0  # kinds of products; 0: onnxruntime could not be asked
    cut_off: tuple[str, ...] = ()


def examine(form: str) -> int:
    """Write the state of the installation to stdout, and return the exit code."""
    found = versions()
    limits = _limits(found)
    processor = _processor(limits)
    troubles = known_bad(found) + unmet(found) + _cannot_be_asked(limits)
    if form == "json":
        told = {"onnxruntime takes": asdict(limits), "processor": asdict(processor), "troubles": [asdict(t) for t in troubles]}
        print(json.dumps({"versions": found, **told}, indent=2))
    else:
        _write(found, limits, processor, troubles)
    return NOT_FINE if troubles else FINE


def versions() -> dict[str, str | None]:
    """Return the version of each package that matters, None where it is missing. Imports none of them."""
    named = (*NEEDED, *OPTIONAL, *(r for r in RUNTIMES[1:] if _version(r)))
    own: dict[str, str | None] = {"torchferry": __version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in named}


def known_bad(found: Mapping[str, str | None]) -> list[Trouble]:
    """Return the combinations among `found` that are known not to work."""
    troubles = _missing(found)
    runtimes = [r for r in RUNTIMES if found.get(r)]
    if len(runtimes) > 1:
        both, keep = " and ".join(runtimes), runtimes[-1]
        mend = f"pip uninstall -y {' '.join(runtimes)} && pip install {keep}"
        troubles.append(Trouble(f"{both} are both installed", "they overwrite each other's files", mend))
    if _older(found, "onnxruntime", (1, 19)) and not _older(found, "numpy", (2,)):
        what = f"onnxruntime {found['onnxruntime']} was built for numpy 1, and numpy is {found['numpy']}"
        troubles.append(Trouble(what, "it fails on import", 'pip install -U "onnxruntime>=1.19"'))
    if _older(found, "torch", OLDEST):
        oldest = ".".join(map(str, OLDEST))
        what = f"torch {found['torch']} is older than {oldest}"
        mend = f'pip install -U "torch>={oldest}"'
        troubles.append(Trouble(what, "capture relies on what torch.export could not do before", mend))
    if _older(found, "onnxruntime", (1, 15)):
        what = f"onnxruntime {found['onnxruntime']} is older than 1.15"
        troubles.append(Trouble(what, "it takes no opset that torch writes today", "pip install -U onnxruntime"))
    return troubles


def _missing(found: Mapping[str, str | None]) -> list[Trouble]:
    """Return the packages that are not there, one trouble for each extra that brings some of them."""
    absent: dict[str, list[str]] = {}
    for name in NEEDED:
        if found.get(name) is None and not (name == "onnxruntime" and any(found.get(r) for r in RUNTIMES)):
            absent.setdefault(BRINGS.get(name, ""), []).append(name)
    return [
        Trouble(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not installed",
            "files are checked, run and explained, and no model is converted" if extra == "export" else "no file can be run",
            f"pip install 'torchferry[{extra}]'" if extra else f"pip install {' '.join(names)}",
        )
        for extra, names in absent.items()
    ]


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
        from torchferry.foreign import onnxruntime as ort

        ir, opset = ort.limits()
    except Exception as error:  # a broken installation fails in any way it likes; that is what we are here to report
        return Limits(problem=f"{type(error).__name__}: {error}")
    return Limits(ir, opset)


def _processor(limits: Limits) -> Processor:
    from torchferry.saturation.asked import exact, features, has_kernel
    from torchferry.saturation.product import BLOCKS, Product, every_kind

    try:
        known = features()
    except Exception:  # torch is missing or broken, which is told elsewhere
        known = ()
    if limits.opset is None:
        return Processor(platform.machine(), known)
    blocks = [Product(*BLOCKS, "int8", "uint8", block) for block in (16, 32, 128)]
    kinds = [kind for kind in (*every_kind(), *blocks) if has_kernel(kind)]
    return Processor(platform.machine(), known, len(kinds), tuple(str(kind) for kind in kinds if not exact(kind)))


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


def _write(found: Mapping[str, str | None], limits: Limits, processor: Processor, troubles: list[Trouble]) -> None:
    from rich.text import Text

    out = console(sys.stdout)
    for name, version in found.items():
        missing = "not installed" + ("" if name in NEEDED else " (optional)")
        out.print(Text.assemble(f"  {name:<14}", version if version else (missing, "dim")))
    out.print()
    if words := untested(found.get("torch")):
        out.print(Text(f"  {words}", "yellow"))
    if limits.opset:
        out.print(f"  onnxruntime takes opset 7 to {limits.opset}, and IR version up to {limits.ir}")
    out.print(f"  the processor is {processor.machine} with {', '.join(processor.features) or 'nothing that is known of'}")
    if processor.cut_off:
        few = "; ".join(processor.cut_off[:2])
        count = f"{len(processor.cut_off)} of {processor.asked} kinds"
        out.print(
            Text(f"  it cuts off sums of 8-bit products in {count} ({few}; ...): see `torchferry explain CHK050`", "yellow")
        )
    elif processor.asked:
        out.print(f"  products of 8-bit integers come out right on it, in all {processor.asked} kinds that onnxruntime has")
    for trouble in troubles:
        out.print(Text.assemble(("trouble", "bold yellow"), f": {trouble.what}"))
        out.print(f"  {trouble.effect}")
        out.print(Text.assemble("  mend it with: ", (trouble.command, "bold")))
    if not troubles:
        out.print(Text.assemble("  ", ("all of these fit together", "green")))
