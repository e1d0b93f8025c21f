"""Tables of positions: rows that nobody reads at the old size are there for larger ones.

claim         a constant that counts places, and picks rows of a stored table by them, goes on counting
precondition  the table has the further rows, and at the old size nobody reads them: measured, by changing them
proof         the mended file reads them at the new size: its outputs change with them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from torchferry.check.proof.runs import Running, all_identical
from torchferry.check.reading import graph
from torchferry.check.running.trace import Feed, Tracer
from torchferry.records.rewrites import Counted, MadeConstant, SizeRewrite

LARGEST = 1 << 26  # elements of a table that is copied for this


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table, and how many of its rows are read at the old size and at the new one."""

    name: str
    was: int
    now: int


def read(model: onnx.ModelProto, rewrites: Sequence[SizeRewrite], was: int, now: int) -> list[Table] | None:
    """Return the tables that rewritten constants count the rows of; None where a count is not of rows, or not from 0 by 1."""
    found = []
    nodes = {graph.label(n): n for n in model.graph.node}
    stored = {t.name: t for t in model.graph.initializer}
    for rewrite in rewrites:
        count = rewrite.pattern if isinstance(rewrite, MadeConstant) else None
        if not isinstance(count, Counted):
            continue
        node = nodes.get(rewrite.node)
        table = stored.get(node.input[0]) if node is not None and node.op_type == "Gather" else None
        if table is None or (count.first, count.step) != (0, 1) or graph.attributes(node).get("axis", 0) != 0:
            return None
        if graph.external(table) or not table.dims or int(np.prod(table.dims)) > LARGEST:
            return None
        found.append(Table(table.name, was, now))
    return found


def level(model: onnx.ModelProto, tables: Sequence[Table]) -> onnx.ModelProto:
    """Return the model with every row of the tables like their first, so that places differ in nothing."""
    return _with_tables(model, tables, lambda rows, _: np.broadcast_to(rows[:1], rows.shape))


def shown(
    tracer: Tracer, original: onnx.ModelProto, mended: onnx.ModelProto, tables: Sequence[Table], feeds: tuple[Feed, Feed]
) -> bool:
    """Say whether the rows behind those of the old size are read by nobody there, and by the mended file at the new size."""
    small, large = feeds
    for table in tables:
        if table.now <= table.was:
            continue
        if _rows(original, table) < table.now:
            return False
        changed = [_with_tables(m, [table], _bumped) for m in (original, mended)]
        with (
            Running(tracer, original, "before") as before,
            Running(tracer, changed[0], "before-bumped") as bumped,
            Running(tracer, mended, "after") as after,
            Running(tracer, changed[1], "after-bumped") as moved,
        ):
            if not all_identical(before(small), bumped(small)) or all_identical(after(large), moved(large)):
                return False
    return True


def _rows(model: onnx.ModelProto, table: Table) -> int:
    return next(int(t.dims[0]) for t in model.graph.initializer if t.name == table.name)


def _bumped(rows: np.ndarray, table: Table) -> np.ndarray:
    made = rows.copy()
    made[table.was : table.now] += np.asarray(1, rows.dtype)
    return made


def _with_tables(model: onnx.ModelProto, tables: Sequence[Table], change: Any) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        for table in (t for t in tables if t.name == tensor.name):
            rows = np.asarray(onnx.numpy_helper.to_array(tensor))
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(change(rows, table)), tensor.name))
    return made
