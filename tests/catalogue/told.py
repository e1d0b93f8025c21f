"""What a rule tells of its bad example, as the text of a snapshot: without what hangs on the machine, the folder or a release."""

from __future__ import annotations

import re
from pathlib import Path

from torchferry.catalogue import Entry
from torchferry.records import Diagnosis, History, Location
from torchferry.report import shown_source

SNAPSHOTS = Path(__file__).parent / "snapshots"
MACHINE = (
    (r"(?:/[\w.+@-]+)+/(?=[\w.+@-]+)", ""),  # folders
    (r"\b(torchferry-example-|tmp)\w+", r"\1#"),
    (
        r"(at most IR version|stamp IR version|ir_version =|knows opset|convert to opset|opset_version=) ?\d+",
        r"\1 #",
    ),  # its limits
    (r"\b\d+\.\d+\.\d+\b(\+\w+)?", "#.#.#"),  # releases, and above what they take
    (
        r"(?<=: )addmm: (?=mat1)|(?<=concrete integers) that are stored inline and can be viewed as an IntArray",
        "",
    ),  # torch 2.15's words
    (r"\bline \d+", "line #"),
    (r"(\.py|\.cc|\.h|\.cpp):\d+", r"\1:#"),
    (r"0x[0-9a-fA-F]+", "0x#"),
    (r"-?\b\d+\.\d+(e[+-]?\d+)?|\b\d+e[+-]?\d+", "#"),  # differences and seconds
    (r"\bat \[[\d, ]*\]", "at [#]"),  # the place of the largest difference
    (r"\b\d+(?=%| s\b| of \d+ trials| trials)", "#"),
)
IN_CODE = 3  # the first of these hold in backticks too


def snapshot(code: str, name: str) -> Path:
    """Return where the words for an example are kept."""
    return SNAPSHOTS / (f"{code}.txt" if name == "bad" else f"{code}-{name}.txt")


def in_words(entry: Entry, history: History) -> str:
    """Return what the rule says of the first case, and the repairs that were kept."""
    found = [d for d in history.cases[0].diagnoses if d.code == entry.code]
    kept = [f"repaired ({r.safety}): {steady(r.title)}" for r in history.kept if r.code == entry.code]
    return "\n\n".join(["\n".join(_told(d)) for d in found] + (["\n".join(kept)] if kept else [])) + "\n"


def _told(found: Diagnosis) -> list[str]:
    lines = [f"{found.severity}: {steady(found.message)}", f"help: {steady(found.help)}", *_place(found.location)]
    return lines + [f"note: {steady(text)}" for text in found.evidence]


def _place(where: Location) -> list[str]:
    """Return the line of source, which stays the same where its number moves, and what else names the place."""
    source = shown_source.line(where.file, where.line).strip()
    rest = shown_source.place(Location(None, None, where.module_path, where.op, where.input_name, where.onnx_node))
    return [f"at: {text}" for text in (source, steady(rest)) if text]


def steady(text: str) -> str:
    """Return a text with what hangs on the machine left out; the user's code, in backticks, stays as it is."""
    parts = re.split(r"(`[^`\n]*`)", text)
    return "".join(_without(part, MACHINE[:IN_CODE] if part.startswith("`") else MACHINE) for part in parts)


def _without(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    for pattern, instead in patterns:
        text = re.sub(pattern, instead, text)
    return text
