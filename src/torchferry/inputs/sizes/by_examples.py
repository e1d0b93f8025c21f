"""Sizes that only the user's examples can move: the values beside them must fit, and values that fit cannot be made up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.bounds import SHOWN, Span
from torchferry.inputs.sizes.probing import Axis, Shapes
from torchferry.inputs.sizes.search_state import Ties


def add_moves(ties: Ties, axes: Collection[Axis], calls: Sequence[Shapes]) -> None:
    """Let axes move as they do from call to call, in `calls` that the model takes, and tie those that are always equal."""
    columns = {root: _column(axis, calls) for axis, root in ties.sizes.items() if root in ties.roots}
    roots = {column: str(root) for root, column in columns.items()}
    for axis in sorted(axes):
        column = _column(axis, calls)
        if axis in ties.sizes or len(set(column)) < 2:
            continue
        if column in roots:
            ties.sizes[axis] = roots[column]
            continue
        root = roots[column] = ties.add([axis], ties.base[axis[0]][axis[1]])
        ties.shown[root] = min(column), max(column)


def let_go(ties: Ties, calls: Sequence[Shapes], named: Collection[Axis] = ()) -> None:
    """Let go of what the sizes that were tried suggested, and a call refutes: a tie, but for `named` axes, or a step."""
    for shapes in calls:
        roots = {str(size): shapes[i][a] for (i, a), size in ties.sizes.items() if size in ties.roots}
        for (i, a), size in [item for item in ties.sizes.items() if item[0] not in named]:
            if size_text.names(size) <= roots.keys() and size_text.value(size, roots) != shapes[i][a]:
                del ties.sizes[i, a]
    for root, step in list(ties.steps.items()):
        if any(n % step for n in _sizes(root, ties, calls)):
            del ties.steps[root]
            ties.shown[root] = min(_sizes(root, ties, calls)), max(_sizes(root, ties, calls))


def widened(span: Span, root: str, ties: Ties, calls: Sequence[Shapes]) -> Span:
    """Return how far a size goes, by the sizes that were tried and by those that the calls show."""
    seen = [span.low, *_sizes(root, ties, calls)]
    if span.high is None or max(seen) <= span.high:
        return replace(span, low=min(seen))
    return replace(span, low=min(seen), high=max(seen), why=SHOWN)


def _sizes(root: str, ties: Ties, calls: Sequence[Shapes]) -> list[int]:
    return [n for axis, size in ties.sizes.items() if size == root for n in _column(axis, calls)]


def _column(axis: Axis, calls: Sequence[Shapes]) -> tuple[int, ...]:
    return tuple(shapes[axis[0]][axis[1]] for shapes in calls)
