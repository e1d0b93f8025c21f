"""Every finding is made by a stage, or by a search after it, and read, field by field: what nobody reads is not worth finding."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchferry.records import Case, Finding, Job, Location, Step, findings

SOURCE = Path(__file__).parent.parent / "src" / "torchferry"
MAKERS = ("inputs", "capture", "translate", "check", "verify", "generate", "repair", "cli")
FILES = {p: ast.parse(p.read_text(encoding="utf-8")) for p in SOURCE.rglob("*.py")}
RECORDS = {n: c for n, c in vars(findings).items() if dataclasses.is_dataclass(c)}
KINDS = {n: c for n, c in RECORDS.items() if issubclass(c, Finding) and not c.__subclasses__()}


def named(node: ast.AST) -> Iterator[str]:
    """Yield the finding that an expression names, or the findings of a union: `X`, `findings.X`, `X | Y`, `(X, Y)`."""
    if isinstance(node, ast.BinOp):
        yield from (*named(node.left), *named(node.right))
    elif isinstance(node, ast.Tuple):
        yield from (name for part in node.elts for name in named(part))
    elif (name := node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "") in RECORDS:
        yield name


def reads(tree: ast.Module) -> Iterator[str]:
    """Yield the findings that a file asks for: `case.findings(X)`, `isinstance(f, X)`, `case X():`, `FindingRule[X]`."""
    unions = {t.id: n.value for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Call(func=ast.Attribute(attr="findings"), args=[kind]) | ast.Call(func=ast.Name("isinstance"), args=[_, kind])
            ):
                yield from named(kind)
            case ast.MatchClass(cls=kind):
                yield from named(kind)
            case ast.Subscript(value=ast.Name("FindingRule"), slice=kind):
                yield from named(unions.get(kind.id, kind) if isinstance(kind, ast.Name) else kind)


def makes(tree: ast.Module) -> Iterator[str]:
    """Yield the findings that a file constructs, or picks: `X(...)`, `Change(X, ...)`, `X if ... else Y`, `{X: ...}`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("isinstance")) | ast.Call(func=ast.Attribute(attr="findings")):
                continue
            case ast.Call(func=function, args=arguments):
                yield from (name for part in (function, *arguments) for name in named(part))
            case ast.IfExp(body=body, orelse=other):
                yield from (*named(body), *named(other))
            case ast.Dict(keys=keys):
                yield from (name for key in keys if key is not None for name in named(key))


MADE = {name for path, tree in FILES.items() if path.relative_to(SOURCE).parts[0] in MAKERS for name in makes(tree)}
READ = {name for tree in FILES.values() for name in reads(tree)}


@pytest.mark.parametrize("name", KINDS)
def test_every_finding_is_constructed_by_a_stage_or_a_search_and_read(name: str) -> None:
    assert name in MADE, "no stage and no search constructs it"
    assert name in READ, "nobody reads it"


def attributes(tree: ast.Module) -> set[str]:
    """Return the attributes that a file reads: by name, in a pattern, or in a sentence that is filled in by name."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()):
                found.add(name)
            case ast.MatchClass(cls=kind, patterns=placed, kwd_attrs=names):
                found |= {*names, *(field for n in named(kind) for field in RECORDS[n].__match_args__[: len(placed)])}
            case ast.Constant(value=str(text)):
                found |= set(re.findall(r"{(\w+)}", text))
    return found


def related(name: str) -> set[str]:
    """Return the names of a record, of what it is built on or what is built on it, and of all that hold it in a field."""
    own = {n for n, c in RECORDS.items() if issubclass(c, RECORDS[name]) or issubclass(RECORDS[name], c)} - {"Finding"}
    typed = name if name not in findings.Instead.__args__ else "Instead"
    held = {n for n, c in RECORDS.items() if any(re.search(rf"\b{typed}\b", str(f.type)) for f in dataclasses.fields(c))}
    return own | held | {further for holder in held for further in related(holder)}


def mentions(tree: ast.Module) -> set[str]:
    """Return the findings that a file names, or that the clues do which it asks."""
    clues = [n.names[0].name for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "torchferry.catalogue"]
    trees = [tree, *(FILES[SOURCE / "catalogue" / f"{name}.py"] for name in clues if name.endswith("_clues"))]
    return {name for one in trees for node in ast.walk(one) for name in named(node)}


ATTRIBUTES = [(mentions(tree), attributes(tree)) for tree in FILES.values()]


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_of_a_finding_is_read_in_a_file_that_names_it(name: str) -> None:
    around = related(name)
    read = {attribute for names, seen in ATTRIBUTES if names & around for attribute in seen}
    unread = {f.name for f in dataclasses.fields(RECORDS[name])} - {"location"} - read
    assert not unread


def test_what_is_not_there_is_found_missing() -> None:
    tree = ast.parse("def f(x: findings.SizeGivenUp) -> None: ...")
    assert not {*makes(tree), *reads(tree)}, "an annotation neither makes nor reads"
    assert {*reads(ast.parse("case.findings(SizeGivenUp)"))} == {"SizeGivenUp"}
    assert not {*makes(ast.parse("isinstance(f, SizeGivenUp)"))}


def test_a_case_gives_the_findings_of_a_class_whatever_the_stage() -> None:
    one = findings.DropoutOn(location=Location(file="a.py", line=1))
    two, other = findings.FeedName("x"), findings.FeedExtra("y")
    case = Case(Job(), (Step("capture", 1, findings=(one, two)), Step("check", 1, findings=(other,))))
    assert case.findings(findings.DropoutOn) == (one,)
    assert case.findings(findings.FeedFinding) == (two, other)
    assert case.findings(findings.ExportFlag) == ()
