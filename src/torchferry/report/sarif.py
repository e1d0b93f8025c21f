"""The report as SARIF 2.1.0, which code hosts show beside the source lines. One small renderer, no object model."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from torchferry.report import addresses
from torchferry.report.escaped import over, shown
from torchferry.report.view import Problem, Reportable, View

LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def to_sarif(result: Reportable | View) -> dict[str, Any]:
    """Return a result as a SARIF log of one run."""
    view = over(shown(result), _no_link, _no_link)
    told = (*view.problems, *view.mended)
    rules = {_rule(p): p for p in told}
    driver = {
        "name": "torchferry",
        "version": view.versions.get("torchferry", "0"),
        "rules": [_described(code, problem) for code, problem in sorted(rules.items())],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(p, sorted(rules)) for p in told],
        "invocations": [{"executionSuccessful": view.ok, "exitCodeDescription": view.headline}],
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _rule(problem: Problem) -> str:
    return problem.code or "torchferry"


def _described(code: str, problem: Problem) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": code,
        "name": problem.slug or code,
        "shortDescription": {"text": problem.title or problem.message},
    }
    if problem.page:
        made["help"] = {"text": f"`torchferry explain {code}` says more."}
    if page := addresses.link(problem.page):  # the standard wants an absolute address here
        made["helpUri"] = page
    return made


def _result(problem: Problem, rules: list[str]) -> dict[str, Any]:
    advice = f"\n\n{problem.help}" if problem.help else ""
    made: dict[str, Any] = {
        "ruleId": _rule(problem),
        "ruleIndex": rules.index(_rule(problem)),
        "level": LEVELS[problem.severity],
        "message": {"text": f"{problem.message}{advice}"},
        "locations": _locations(problem),
    }
    if problem.fixed:
        made["suppressions"] = [{"kind": "external", "justification": "repaired in the exported file"}]
    return made


def _locations(problem: Problem) -> list[dict[str, Any]]:
    place = problem.place
    logical = [
        {"name": name, "kind": kind}
        for name, kind in ((place.module_path, "module"), (place.input_name, "parameter"), (place.onnx_node, "object"))
        if name
    ]
    where: dict[str, Any] = {}
    if place.file:
        region = {"region": {"startLine": place.line}} if place.line else {}
        where["physicalLocation"] = {"artifactLocation": {"uri": _uri(place.file)}, **region}
    if logical:
        where["logicalLocations"] = logical
    return [where] if where else []


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _no_link(text: str) -> str:
    """Return a text without what viewers take for a link: `[words](address)`."""
    return re.sub(r"\[(?=[^\]]*\]\()", r"\\[", text)
