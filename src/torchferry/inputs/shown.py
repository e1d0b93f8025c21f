"""Sizes that only the user's examples can move: the values beside them must fit, and values that fit cannot be made up."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torchferry.inputs.probe import Axis, Shapes
from torchferry.inputs.ties import Ties


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


def _column(axis: Axis, calls: Sequence[Shapes]) -> tuple[int, ...]:
    return tuple(shapes[axis[0]][axis[1]] for shapes in calls)
