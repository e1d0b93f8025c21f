"""`for` over a dimension that moves: as torch's scan over the steps, which carries names and stacks what was appended."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import Any, Literal

from torchferry.capture.rewrites import index_numbers, names, picked_items, slices
from torchferry.capture.rewrites.blocks import StatementPlace, around, contains, find
from torchferry.capture.rewrites.stacked_lists import StackedLists, appended
from torchferry.capture.rewrites.step_index import StepIndex
from torchferry.capture.rewrites.syntax_tree import (
    OWN,
    TREE,
    CannotRewrite,
    FunctionNode,
    Swap,
    named,
    new_function,
    own,
    place_at,
)
from torchferry.capture.rewrites.windows import Windows
from torchferry.foreign.torch_control_flow import SCAN

Begin = Literal["as-is", "grown", "after-first"]


def rewrite(function: FunctionNode, line: int, begin: Begin = "as-is") -> None:
    """Rewrite the `for` or the list comprehension on a line.

    What is carried begins as it is before the loop; "grown" to the shape that the first round gives a number; or "after-first",
    with the first round made outside of the scan, where a name is None until then.
    """
    place = _as_statement(function, line)
    loop = place.statement
    assert isinstance(loop, ast.For)
    scope, before = names.known_at(function, place.around, loop.lineno)
    after = names.live_after(scope, place.block, place.index, place.loop is not None)
    picked_items.rewrite(loop, before, after)
    loop.body = index_numbers.left_tensors(loop.body)
    steps = _steps(loop)
    lists = _lists(loop, function)
    body = names.functional([*steps.unpack, *(s for s in loop.body if not appended(s))])
    if contains(body, ast.Break, ast.Continue, ast.Return):
        raise CannotRewrite("it has exits of a kind that cannot be carried along")
    windows = Windows(steps.index, loop.body)
    body = [windows.visit(s) for s in body]
    for number in (steps.index, *steps.read):
        body = [StepIndex(number).visit(s) for s in body]
    inside = [n for n in names.stored(body) if n != steps.index]
    carried = [n for n in inside if n in before and (n in after or n in names.loaded(body))]
    last = [n for n in inside if n not in before and n in after]
    items = {name: windows.visit(copy.deepcopy(value)) for name, value in lists.items()}
    for number in (steps.index, *steps.read):
        items = {name: StepIndex(number).visit(value) for name, value in items.items()}
    length = f"length_{loop.lineno}" if _stride(loop) in windows.widths else ""  # the last slice may be cut short
    rest = _used_as_tensors(function, place, list(items), length)
    held = {n: _Held(n in _filled(function, loop), n in _at_front(loop)) for n in items}
    apart = names.apart(scope, loop.lineno, names.loaded([*body, *items.values()]) - set(carried))
    first = [*apart, *ast.parse(f"{length} = {_extent(loop)}").body] if length else apart
    place.replace([*first, *_emit(loop.lineno, steps, body, carried, last, items, held, begin), *rest], drop_rest=True)


def has_inner(loop: ast.stmt) -> bool:
    """Say whether a loop holds one that counts as far as a name or a size says, which may move as well."""
    return isinstance(loop, ast.For) and bool(_inner(loop))


def rewrite_nested(function: FunctionNode, line: int) -> None:
    """Rewrite the `for` on a line and those inside of it, the innermost first."""
    loop = find(function, line, has_inner).statement
    assert isinstance(loop, ast.For)
    for at in (*reversed(_inner(loop)), line):
        rewrite(function, at)
        place_at(function, at)


def _inner(loop: ast.For) -> list[int]:
    loops = [n for n in ast.walk(loop) if isinstance(n, ast.For) and n is not loop and _called(n.iter, "range")]
    return sorted(n.lineno for n in loops if names.loaded([n.iter]) - {"range", "self", "len"})


def _stride(loop: ast.For) -> str:
    """Return the third number of the loop's range, as it is written."""
    return ast.unparse(loop.iter.args[2]) if _called(loop.iter, "range") and len(loop.iter.args) == 3 else ""  # type: ignore[attr-defined]


def _extent(loop: ast.For) -> str:
    """Return how far the loop's range goes: its second number less its first."""
    first, end = (ast.unparse(a) for a in loop.iter.args[:2])  # type: ignore[attr-defined]
    return end if first == "0" else f"{end} - {first}"


@dataclass(frozen=True, slots=True)
class _Steps:
    index: str  # the name of the step's number
    numbers: str  # the expression that gives all of them
    unpack: list[ast.stmt]  # what sets the loop's own names from the number
    read: tuple[str, ...] = ()  # those of them that are plain numbers read from a tensor


def _steps(loop: ast.For) -> _Steps:
    """Return how a loop's variable follows from the number of the step."""
    source = loop.iter
    unpack: list[ast.stmt] = []
    target = loop.target
    index = f"step_{loop.lineno}"
    if _called(source, "enumerate") and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        index, target, source = target.elts[0].id, target.elts[1], source.args[0]  # type: ignore[attr-defined]
    if _called(source, "range") or (_called(source, "reversed") and _called(source.args[0], "range")):  # type: ignore[attr-defined]
        turned = _called(source, "reversed")
        inner: Any = source.args[0] if turned else source  # type: ignore[attr-defined]
        numbers = f"torch.arange({', '.join(ast.unparse(a) for a in inner.args)})"
        if not isinstance(target, ast.Name):
            raise CannotRewrite("its variable is no plain name")
        return _Steps(target.id, numbers + (".flip(0)" if turned else ""), [])
    sources = source.args if _called(source, "zip") else [source]  # type: ignore[attr-defined]
    targets = target.elts if _called(source, "zip") and isinstance(target, ast.Tuple) else [target]
    size = ""
    for one, name in zip(sources, targets, strict=True):
        along = slices.taken_apart(one)
        length = f"{along.tensor}.size({along.axis})"
        size = f"torch.sym_min({size}, {length})" if size else length  # zip ends with the shortest
        unpack.append(ast.parse(f"{ast.unparse(name)} = {along.at(index)}").body[0])
    read = [n.id for one, n in zip(sources, targets, strict=True) if slices.reads_numbers(one) and isinstance(n, ast.Name)]
    return _Steps(index, f"torch.arange({size})", unpack, tuple(read))


@dataclass(frozen=True, slots=True)
class _Held:
    """A list that a loop fills: whether it held something before, and whether each round puts its value at the front."""

    filled: bool = False
    front: bool = False

    def joined(self, name: str, made: str) -> str:
        """Return the code for all that the list holds after the loop, as one tensor."""
        parts = [f"torch.stack({name})"] * self.filled
        parts = [f"{made}.flip(0)", *parts] if self.front else [*parts, made]
        return f"torch.cat([{', '.join(parts)}])" if self.filled else parts[0]


def _called(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _lists(loop: ast.For, function: FunctionNode) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for position, statement in enumerate(loop.body):
        pair = appended(statement)
        if pair is None:
            continue
        if pair[0] in found:
            raise CannotRewrite(f"it appends to `{pair[0]}` twice")
        later = set(names.stored(loop.body[position + 1 :]))
        if later & names.loaded([pair[1]]):
            raise CannotRewrite("it changes a name after appending it")
        found[pair[0]] = pair[1]
    inner = [n for s in loop.body if not appended(s) for n in ast.walk(s)]
    if any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("append", "extend", "insert")
        for n in inner
    ):
        raise CannotRewrite("it appends under a condition")
    for name in found:
        starts = [
            s
            for s in ast.walk(function)
            if isinstance(s, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)
            and s.lineno <= loop.lineno
        ]
        if not all(isinstance(s.value, ast.List) for s in starts):
            raise CannotRewrite(f"`{name}` does not begin as a list")
    return found


def _filled(function: FunctionNode, loop: ast.For) -> set[str]:
    """Return the lists that hold something before the loop."""
    return {
        name
        for s in ast.walk(function)
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.List) and s.value.elts and s.lineno <= loop.lineno
        for name in names.stored(s.targets)
    }


def _at_front(loop: ast.For) -> set[str]:
    """Return the lists that the loop fills from the front: `list.insert(0, value)`."""
    calls = [s.value.func for s in loop.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    return {ast.unparse(f.value) for f in calls if isinstance(f, ast.Attribute) and f.attr == "insert"}


def _as_statement(function: FunctionNode, line: int) -> StatementPlace:
    """Return the loop on a line, or around it; a list comprehension is written out as one first."""
    try:
        return find(function, line, lambda s: isinstance(s, ast.For))
    except CannotRewrite:
        pass
    try:
        place = find(function, line, lambda s: any(isinstance(n, ast.ListComp | ast.GeneratorExp) for n in ast.walk(s)))
    except CannotRewrite:
        return around(function, line, ast.For)
    made = next(n for n in ast.walk(place.statement) if isinstance(n, ast.ListComp | ast.GeneratorExp))
    if len(made.generators) != 1 or made.generators[0].ifs:
        raise CannotRewrite("the comprehension has conditions or several loops")
    name, one = f"items_{line}", made.generators[0]
    start, loop = ast.parse(
        f"{name} = []\nfor {ast.unparse(one.target)} in {ast.unparse(one.iter)}:\n    {name}.append({ast.unparse(made.elt)})"
    ).body
    rest: ast.stmt = Swap(made, ast.Name(name, ast.Load())).visit(place.statement)  # type: ignore[assignment]
    for new in (start, loop):
        ast.increment_lineno(new, line - new.lineno)
        for node in ast.walk(new):
            if isinstance(node, ast.expr | ast.stmt):
                node.lineno = node.end_lineno = line
    place.replace([start, loop, rest])
    return StatementPlace(place.block, place.index + 1, place.around)


def _used_as_tensors(function: FunctionNode, place: StatementPlace, lists: list[str], length: str) -> list[ast.stmt]:
    """Return what follows the loop, with the lists it filled being stacked tensors; they may be used in no other way."""
    rest = [StackedLists(lists, length).visit(s) for s in place.rest]
    elsewhere = [s for s in function.body if s.lineno > (place.statement.end_lineno or 0) and s not in rest and place.around]
    if any(n in names.loaded(elsewhere) for n in lists):
        raise CannotRewrite("the list is used outside the block of the loop")
    return rest


def _emit(
    line: int,
    steps: _Steps,
    body: list[ast.stmt],
    carried: list[str],
    last: list[str],
    items: dict[str, ast.expr],
    held: dict[str, _Held],
    begin: Begin,
) -> list[ast.stmt]:
    """Return the scan and what takes its results apart."""
    carry = carried or [f"nothing_{line}"]
    outputs = [*(f"torch.as_tensor({n})" for n in last), *(f"{n}_{line}" for n in items)]
    start = [] if carried else [ast.parse(f"{carry[0]} = torch.zeros(())").body[0]]
    nested = names.held_together([*body, *items.values()])
    # a state that is None at first may well be a tuple afterwards, as nn.LSTM has it
    kept = ", ".join(own(n, n in nested or begin == "after-first") for n in carry)
    made = ", ".join(f"({o}).clone()" for o in outputs) or "torch.zeros(())"
    before, after = ast.parse(f"({', '.join(carry)},) = carry\nreturn (({kept},), ({made},))").body
    inside = [before, *body, *(named(f"{n}_{line}", v) for n, v in items.items()), after]
    step = new_function(f"body_{line}", ["carry", steps.index], inside)
    results = {n: held.get(n, _Held()) for n in (*last, *items)}
    if begin == "after-first":
        code = _after_first(line, steps, carry, results)
    else:
        code = _from_start(line, steps, carry, f"({kept},)", results, grown=begin == "grown")
    # of no rounds there is no last value, and none is looked at; but the file must not stumble over it
    code += [f"{n} = torch.cat([{n}.new_zeros(1, *{n}.shape[1:]), {n}])[-1]" for n in last]
    return [*start, step, *ast.parse("\n".join(code)).body]


def _from_start(line: int, steps: _Steps, carry: list[str], first: str, results: dict[str, _Held], grown: bool) -> list[str]:
    """Return the lines that scan all steps."""
    code = []
    if grown:
        code = [f"(like_{line}, _) = body_{line}({first}, {steps.numbers}[0])"]
        first = f"{TREE}(lambda a, b: a.to(b.dtype).expand_as(b){OWN}, {first}, like_{line})"
    code += [f"(({', '.join(carry)},), made_{line}) = {SCAN}(body_{line}, {first}, {steps.numbers}, dim=0)"]
    return [*code, *_taken_apart(line, results)]


def _after_first(line: int, steps: _Steps, carry: list[str], results: dict[str, _Held]) -> list[str]:
    """Return the lines that make the first step outside, and scan all steps, the first of which gives what is known by then."""
    begun = "lambda a: a if a is None else torch.as_tensor(a).clone()"
    given = ", ".join(f"{TREE}({begun}, {n})" for n in carry)
    return [
        f"steps_{line} = {steps.numbers}",
        f"known_{line} = body_{line}(({given},), steps_{line}[0])",
        f"def step_{line}(carry, step):",
        f"    made = body_{line}(carry, step)",
        f"    return {TREE}(lambda a, b: torch.where(step == steps_{line}[0], a, b), known_{line}, made)",
        f"(({', '.join(carry)},), made_{line}) = {SCAN}(step_{line}, {TREE}(torch.clone, known_{line}[0]), steps_{line}, dim=0)",
        *_taken_apart(line, results),
    ]


def _taken_apart(line: int, results: dict[str, _Held]) -> list[str]:
    """Return the lines that name what a scan stacked."""
    return [f"{n} = {held.joined(n, f'made_{line}[{i}]')}" for i, (n, held) in enumerate(results.items())]
