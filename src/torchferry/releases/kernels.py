"""What each onnxruntime release implements on the CPU, and the newest versions it reads: a table measured with the wheels.

`kernels.json` has every kernel once, with the first and last release that has it; `benchmarks/release_kernels.py`
makes it anew from the wheels themselves. Releases are told by their minor number: 17 is onnxruntime 1.17.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

Kernel = tuple[int, int, dict[str, tuple[str, ...]]]  # first and last version of the operator, {type variable: types}
Limits = tuple[int, int, int]  # newest opset, IR version, and version of ai.onnx.ml that a release reads
FILE = Path(__file__).with_suffix(".json")


@cache
def _table() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


@cache
def limits() -> dict[int, Limits]:
    """Return what each release of the table reads, by its minor number."""
    return {int(minor): (opset, ir, ml) for minor, (opset, ir, ml) in _table()["limits"].items()}


@cache
def kernels(minor: int) -> dict[tuple[str, str], tuple[Kernel, ...]]:
    """Return what a release implements, by (domain, operator)."""
    table = _table()
    asked = max(minor, table["first_asked"])  # an older one is taken for the first that can be asked, but for what it lacks
    absent = set(table["absent"].get(str(minor), ()))
    types = [tuple(f"tensor({word})" if "(" not in word else word for word in line.split()) for line in table["types"]]
    found: dict[tuple[str, str], list[Kernel]] = {}
    for domain, operators in table["kernels"].items():
        for op_type, entries in operators.items():
            if f"{domain}::{op_type}" in absent:
                continue
            for since, until, first, last, constraints in entries:
                if since <= asked and (until is None or asked <= until):
                    bound = {name: types[number] for name, number in constraints.items()}
                    found.setdefault((domain, op_type), []).append((first, last, bound))
    return {key: tuple(value) for key, value in found.items()}


def packed(
    by_release: Mapping[int, Mapping[tuple[str, str], tuple[Kernel, ...]]],
    read: Mapping[int, Limits],
    absent: Mapping[int, list[str]],
) -> str:
    """Return the text of the table: what each release that could be asked implements, what each reads, what others lack."""
    minors = sorted(by_release)
    lines: dict[str, int] = {}
    operators: dict[tuple[str, str], list[Any]] = {}
    present: dict[tuple[str, str, str], list[int]] = {}
    for minor in minors:
        for (domain, op_type), entries in by_release[minor].items():
            for first, last, constraints in entries:
                numbers = {name: lines.setdefault(_line(words), len(lines)) for name, words in sorted(constraints.items())}
                present.setdefault((domain, op_type, json.dumps([first, last, numbers])), []).append(minor)
    for (domain, op_type, entry), releases in sorted(present.items()):
        for since, until in _spans(releases, minors):
            operators.setdefault((domain, op_type), []).append([since, until, *json.loads(entry)])
    head = {"first_asked": minors[0], "absent": {str(m): sorted(names) for m, names in absent.items()}}
    return _written(head, read, list(lines), operators)


def _line(words: tuple[str, ...]) -> str:
    plain = [w.removeprefix("tensor(").removesuffix(")") if w.count("(") == 1 and w.startswith("tensor(") else w for w in words]
    return " ".join(sorted(plain))


def _spans(releases: list[int], minors: list[int]) -> list[tuple[int, int | None]]:
    """Return the runs of neighbouring releases: (first, last); None for one that goes on past the table."""
    spans: list[tuple[int, int | None]] = []
    for minor in releases:
        before = minors[minors.index(minor) - 1] if minor != minors[0] else None
        last = None if minor == minors[-1] else minor
        if spans and before is not None and spans[-1][1] == before:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((minor, last))
    return spans


def _written(
    head: Mapping[str, Any], read: Mapping[int, Limits], lines: list[str], operators: Mapping[tuple[str, str], list[Any]]
) -> str:
    """Return the table as JSON with one operator to a line, so that a new release shows as a short difference."""
    text = [f"{json.dumps(head)[:-1]},", '"limits": {']
    text += [",\n".join(f' "{minor}": {json.dumps(list(read[minor]))}' for minor in sorted(read)), "},", '"types": [']
    text += [",\n".join(f" {json.dumps(line)}" for line in lines), "],", '"kernels": {']
    domains = sorted({domain for domain, _ in operators})
    parts = []
    for domain in domains:
        rows = [f"  {json.dumps(op)}: {json.dumps(operators[d, op])}" for d, op in sorted(operators) if d == domain]
        parts.append(f" {json.dumps(domain)}: {{\n" + ",\n".join(rows) + "\n }")
    return "\n".join([*text, ",\n".join(parts), "}}\n"])
