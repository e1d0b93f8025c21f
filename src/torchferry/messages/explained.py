"""The explanation of a message: the first mechanism that its words show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from torchferry.messages import capture, comparing, converting, elsewhere, installing, opening, running, tracing
from torchferry.messages.mechanism import UNTOLD, Mechanism

# characters that are read of a longer text, for an error says last, or first, what went wrong; and of a line: the time that a
# pattern takes may grow with the square of it
HEAD, TAIL, LINE = 20_000, 40_000, 1_000
# in this order: what is said of one operator or file before what is said of whole programs
MECHANISMS: tuple[Mechanism, ...] = (
    *installing.BROKEN,
    *opening.UNREADABLE,
    *elsewhere.MECHANISMS,
    *comparing.MECHANISMS,
    *opening.MECHANISMS,
    *running.MECHANISMS,
    *capture.MECHANISMS,
    *converting.MECHANISMS,
    *tracing.MECHANISMS,
    *installing.MECHANISMS,
    *comparing.PROSE,
    *converting.LAST,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|(?<=[\s^])\[\d{1,2}m")
_ABOUT_EXPORT = re.compile(
    r"onnx|torch[./\\]_?export|torch[./\\]jit|jit\.trace|optimum|TracerWarning|\bexport(?:er|ing)\b|ExecutionProvider|fx[./\\]experimental|\[TRT\]|tensorrt"
    r"|float32 number \S+ will be truncated|importer registered for op|builtin_op_importers|ModelImporter|trtexec|quantize_(?:static|dynamic)|\baten::|\bort_(?:session|out|inputs?)|\bopenvino\b",
    re.IGNORECASE,
)
_FILE = re.compile(r"(?:Load model (?:from )?|[\s'\"(=])([^\s'\"()=]+\.(?:onnx|ort))\b")


@dataclass(frozen=True)
class Explained:
    """What a message means; without a cause where nothing here explains it."""

    cause: str
    means: str
    do: str
    code: str = ""
    command: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.cause)


UNKNOWN = Explained(
    "",
    "Nothing in this text is an error of exporting a model to ONNX, or of running one, that is known here.",
    "If it is one, show the model or the file themselves: `torchferry export`, `torchferry check`.",
)


def explained(text: str) -> Explained:
    """Return what an error, a traceback or a warning means, from its text alone."""
    text = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
    text = "\n".join(line[:LINE] for line in _COLOURS.sub("", text).split("\n"))
    return _first(text) or _first(re.sub(r"\s*\n\s*", " ", text)) or UNKNOWN  # a terminal or a forum may have broken its lines


def _first(text: str) -> Explained | None:
    speaks_of_export = _ABOUT_EXPORT.search(text) is not None
    for mechanism in MECHANISMS:
        if mechanism.about_export and not speaks_of_export:
            continue
        if (facts := mechanism.facts(text)) is not None:
            return _told(mechanism, facts, text)
    return None


def _told(mechanism: Mechanism, facts: Mapping[str, str], text: str) -> Explained:
    file = _FILE.search(text)
    known = {**UNTOLD, **({"file": file[1]} if file else {}), **facts}
    words = (mechanism.means, mechanism.do, mechanism.command)
    means, do, command = (w.format_map(known) for w in words)
    return Explained(mechanism.cause, means, do, mechanism.code, command, dict(facts))
