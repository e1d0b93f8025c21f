"""Places in the user's source that are rewritten: which rewrites may suit a line, and how they are carried out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torchferry.capture.rewrites import (
    branch,
    conditions,
    eager_values,
    exits,
    extremes,
    for_loops,
    functions,
    identities,
    index_numbers,
    item_loops,
    kept_attributes,
    lookup,
    names,
    number_lists,
    other_threads,
    repeated_lists,
    syntax_tree,
    while_loops,
)
from torchferry.capture.rewrites.blocks import StatementPlace, find, places
from torchferry.capture.rewrites.syntax_tree import CannotRewrite, FunctionNode
from torchferry.records.sites import Site, SiteKind, SiteRewrite

Way = tuple[SiteKind, SiteRewrite]


def _skip_check(function: FunctionNode, line: int) -> None:
    """Take out an exit that only saves work, such as `if index.numel() == 0: continue`."""
    place = find(function, line, lambda s: isinstance(s, ast.If) and not s.orelse and exits.exit_kind(s) is ast.Continue)
    place.replace([ast.Pass()] if len(place.block) == 1 else [])


REWRITES: dict[Way, Callable[[FunctionNode, int], None]] = {
    ("check", "drop"): branch.drop_check,
    ("branch", "extreme"): extremes.rewrite,
    ("branch", "always"): identities.rewrite,
    ("branch", "cond"): lambda f, line: branch.rewrite(f, line, "cond"),
    ("branch", "where"): lambda f, line: branch.rewrite(f, line, "where"),
    ("ternary", "extreme"): extremes.rewrite,
    ("ternary", "always"): identities.rewrite,
    ("ternary", "where"): lambda f, line: branch.rewrite_ternary(f, line, "where"),
    ("ternary", "cond"): lambda f, line: branch.rewrite_ternary(f, line, "cond"),
    ("truth", "tensor"): branch.rewrite_truth,
    ("exit", "mask"): exits.rewrite,
    ("exit", "drop"): _skip_check,
    ("while", "while_loop"): while_loops.rewrite,
    ("for", "while_loop"): while_loops.rewrite_counted,
    ("for", "items"): item_loops.rewrite,
    ("for", "scan"): for_loops.rewrite,
    ("for", "scan-from-first"): lambda f, line: for_loops.rewrite(f, line, "grown"),
    ("for", "scan-after-first"): lambda f, line: for_loops.rewrite(f, line, "after-first"),
    ("for", "scans"): for_loops.rewrite_nested,
    ("list", "full"): repeated_lists.rewrite,
    ("number", "tensor"): number_lists.rewrite,
    ("store", "drop"): kept_attributes.rewrite,
    ("index", "tensor"): index_numbers.rewrite,
    ("lookup", "all"): lookup.rewrite,
    ("stop", "given"): eager_values.rewrite,
}


_SCANS: tuple[Way, ...] = (("for", "scan"), ("for", "scan-from-first"), ("for", "scan-after-first"))


def candidates(module: Any, file: str, line: int) -> list[Site]:
    """Return the rewrites that may suit a line, best first; none when its source is not at hand."""
    try:
        first = functions.at(module, file, line).__code__.co_firstlineno
        node = syntax_tree.function_at(syntax_tree.tree_of(file), first)
    except CannotRewrite:
        return []
    return [Site(file, line, first, kind, how) for kind, how in _suitable(node, line)]


def loop_of(site: Site) -> int | None:
    """Return the line on which the loop begins that a site of a loop's kind is about; None for others."""
    if site.kind not in ("for", "while"):
        return None
    node = syntax_tree.function_at(syntax_tree.tree_of(site.file), site.function)
    loops = [p.statement for p in places(node.body) if isinstance(p.statement, ast.For | ast.While)]
    around = [s.lineno for s in loops if s.lineno <= site.line <= (s.end_lineno or 0)]
    return around[-1] if around else site.line


def passing(module: Any, file: str, line: int) -> Site:
    """Return the site at which a line is given its eager value; CannotRewrite when its source is not at hand."""
    return Site(file, line, functions.at(module, file, line).__code__.co_firstlineno, "stop", "given")


def _suitable(function: FunctionNode, line: int) -> Iterator[Way]:
    statements = [p for p in places(function.body) if p.statement.lineno <= line <= (p.statement.end_lineno or 0)]
    # `if empty: continue` in one line: it may have been the head that stopped, or what it governs
    heads = [p for p in statements[:-1] if _is_one_liner(p.statement) and p.statement.lineno == line]
    besides = [p for p in statements[:-1] if not hasattr(p.statement, "body")]  # `n = len(x); y = [0] * n`
    yield from dict.fromkeys(way for place in (*heads, *statements[-1:], *besides) for way in _ways(function, place))


def _is_one_liner(statement: ast.stmt) -> bool:
    """Say whether a branch or loop on moving values stands in one line with what it governs."""
    if isinstance(statement, ast.If) and conditions.is_static(statement.test):
        return False
    return isinstance(statement, ast.If | ast.While | ast.For) and statement.body[0].lineno == statement.lineno


def _ways(function: FunctionNode, place: StatementPlace) -> Iterator[Way]:
    """Yield the rewrites that may suit a statement, best first: by what it is, then by the expressions in it."""
    yield from _by_kind(function, place)
    yield from _by_expressions(function, place)


def _by_kind(function: FunctionNode, place: StatementPlace) -> Iterator[Way]:
    statement = place.statement
    ways: tuple[Way, ...]
    if branch.is_validation(statement) or branch.raises_first(statement):
        yield "check", "drop"
    elif isinstance(statement, ast.If):
        if place.loop is not None and _is_exit(statement):
            ways = (("exit", "mask"), ("exit", "drop")) if not isinstance(place.loop, ast.While) else (("while", "while_loop"),)
            # a round on an empty tensor changes nothing: skipping it only saves work
            yield from reversed(ways) if conditions.is_emptiness(statement.test) else ways
        if extremes.suits(statement):
            yield "branch", "extreme"
        if identities.suits(statement):
            yield "branch", "always"
        ways = (("branch", "cond"), ("branch", "where"))
        # torch's decompositions do not get along with writes inside a branch
        yield from reversed(ways) if names.writes_in_place([statement]) else ways
    elif isinstance(statement, ast.While):
        yield "while", "while_loop"
    elif isinstance(statement, ast.For):
        if item_loops.suits(statement, function):
            yield "for", "items"
        if while_loops.is_counted(statement) and conditions.from_value(statement.iter, function):
            yield "for", "while_loop"
        if for_loops.has_inner(statement):
            yield "for", "scans"
        yield from _SCANS


def _by_expressions(function: FunctionNode, place: StatementPlace) -> Iterator[Way]:
    statement = place.statement
    kinds = {type(n) for n in ast.walk(statement)} if not hasattr(statement, "body") else set()
    if ast.IfExp in kinds:
        if extremes.suits(statement):
            yield "ternary", "extreme"
        if identities.suits(statement):
            yield "ternary", "always"
        yield "ternary", "where"
        yield "ternary", "cond"
    if kinds and any(branch.asks_truth(n) for n in ast.walk(statement)):
        yield "truth", "tensor"
    if kinds and repeated_lists.suits(statement):
        yield "list", "full"
    if number_lists.suits(statement):
        yield "number", "tensor"
    if kinds & {ast.ListComp, ast.GeneratorExp}:
        yield from _SCANS
    if ast.Subscript in kinds and place.loop is not None and not lookup.reads(statement):
        ways: tuple[Way, ...] = _SCANS if isinstance(place.loop, ast.For) else (("while", "while_loop"),)
        yield from ways
    if kinds and lookup.suits(statement):
        yield "lookup", "all"
    if kinds and index_numbers.suits(function, statement.lineno):
        yield "index", "tensor"
    if kept_attributes.suits(statement):
        yield "store", "drop"


def _is_exit(statement: ast.If) -> bool:
    try:
        return bool(exits.exit_kind(statement))
    except CannotRewrite:
        return False


@contextmanager
def applied(module: Any, sites: Iterable[Site]) -> Iterator[None]:
    """Let the model's functions run as rewritten for the block; CannotRewrite if a line does not lend itself to it."""
    codes = []
    chosen = list(sites)
    for file, first in dict.fromkeys((s.file, s.function) for s in chosen):
        mine = [s for s in chosen if (s.file, s.function) == (file, first)]
        function = functions.at(module, file, mine[0].line)
        tree = syntax_tree.tree_of(file)
        node = rewritten(syntax_tree.function_at(tree, first), mine)
        if functions.needs_import(function):
            functions.with_import(node)
        other_threads.keep_original(other_threads.ask_first(node), function)
        codes.append((function, syntax_tree.compiled(node, tree, function.__code__)))
    with functions.given_code(codes):
        yield


def rewritten(node: FunctionNode, sites: Iterable[Site]) -> FunctionNode:
    """Return a function's tree with the rewrites made in it, one after the other."""
    for site in sites:
        REWRITES[site.kind, site.how](node, site.line)
        syntax_tree.place_at(node, site.line)
    return node
