"""Same numbers: a cast that a mend put in is right where it keeps every number, and no other type would give another result.

claim         the operator was meant to compute with these numbers
precondition  the operands' own types are the readings that there are; one that would lose fractions is none
proof         on the values that reach the node, each cast gives the number that went in; where a float is rounded, or
              the operator itself hangs on the type, as a division does, the node is run in each of the types, and all
              give the same
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from torchferry.check.proof.alone import WORDS, given
from torchferry.check.proof.evaluated import alike
from torchferry.check.proof.mending import Mending
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import infer
from torchferry.edits.check import CastAround, CastOperands

# Operators that give some of the numbers that they take: in another type that holds these, the same ones.
PICKS = frozenset({
    "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Max", "Min", "Where", "Gather", "Concat", "Slice", "Transpose",
    "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "Identity", "Pad", "Compress", "ScatterND", "Split",
})  # fmt: skip


def operands_not_shown(mending: Mending, edit: CastOperands) -> str:
    """Return why operands that were cast to one type may not have been meant so."""
    node = next((n for n in mending.raw.graph.node if graph.label(n) == edit.node), None)
    if node is None:
        return "the node stands in a subgraph, where its values cannot be looked at" if _lossy_inside(mending) else ""
    words = set()
    for feed in mending.asked():
        known = _originals(mending, mending.values(feed, node.input))
        operands = {n: known.get(n) for n in node.input if n}
        if any(not isinstance(a, np.ndarray) for a in operands.values()):
            return "the values that reach it cannot be looked at"
        words.add(_readings_differ(mending, node, operands, edit))
    return next((w for w in sorted(words, reverse=True) if w), "")


def _readings_differ(mending: Mending, node: onnx.NodeProto, operands: Mapping[str, Any], edit: CastOperands) -> str:
    chosen, cast = edit.to, set(edit.values)
    meant = [chosen, *sorted({WORDS[a.dtype] for n, a in operands.items() if n in cast or WORDS[a.dtype] == chosen} - {chosen})]
    if chosen not in dtypes.FLOATS and any(word in dtypes.FLOATS for word in meant):
        return f"{chosen} and floats together are floats in PyTorch, and what follows may depend on it"
    answers: dict[str, Any] = {}
    alike_typed = [n for n, a in operands.items() if n in cast or WORDS[a.dtype] == chosen]
    for word in meant:
        made = {n: as_type(operands[n], word) for n in alike_typed}
        if any(m is None for m in made.values()):
            if word == chosen:
                return f"{chosen} does not hold the numbers that are cast to it"
            continue
        answer = given(mending, node, {**operands, **made})
        if answer is None and word == chosen:
            return "the node cannot be run alone"
        answers |= {word: answer} if answer is not None else {}
    for word, answer in answers.items():
        if not all(alike(a, b) for a, b in zip(answer, answers[chosen], strict=False)):
            return f"computed in {word} it gives something else than in {chosen}"
    return ""


def as_type(value: np.ndarray, word: str) -> np.ndarray | None:
    """Return the same numbers in another type; None where they are not: a fraction lost, a float that becomes 0 or infinite."""
    to = dtypes.of_text(f"tensor({word})")
    with np.errstate(all="ignore"):
        made = value.astype(to)
        old, new = value.astype(np.float64), made.astype(np.float64)
    floats = value.dtype.kind in "fV" and made.dtype.kind in "fV"
    kept = np.isclose(new, old, rtol=1e-2, atol=0, equal_nan=True) if floats else (new == old) | (np.isnan(new) & np.isnan(old))
    return made if bool(np.all(kept)) else None


def around_not_shown(mending: Mending, edit: CastAround) -> str:
    """Return why a node that was computed in another type may give something else."""
    for entry in edit.nodes:
        node = next((n for n in mending.raw.graph.node if graph.label(n) == entry.node), None)
        if node is None or node.op_type not in PICKS:
            return f"`{entry.node}` is computed in {entry.to}, and nothing here computes it in {entry.from_}"
        for feed in mending.asked():
            known = mending.values(feed, node.input)
            arrays = [known.get(i) for i in node.input if i and i in (entry.inputs or node.input)]
            if any(not isinstance(a, np.ndarray) or not _exactly(a, entry.to) for a in arrays):
                return f"{entry.to} does not hold the numbers that `{entry.node}` is given"
    return ""


def casts_not_shown(mending: Mending) -> str:
    """Return why a cast that a mend put in may lose something: one that was looked at did, or one inside a subgraph could."""
    there = graph.value_names(mending.raw)
    added = [n for n in mending.model.graph.node if n.op_type == "Cast" and n.output[0] not in there]
    for feed in mending.asked():
        known = _originals(mending, mending.values(feed, [v for n in added for v in (*n.input, *n.output)]))
        for node in added:
            before, after = known.get(node.input[0]), known.get(node.output[0])
            if (
                not isinstance(before, np.ndarray)
                or not isinstance(after, np.ndarray)
                or not _exactly(before, WORDS[after.dtype])
            ):
                return f"the numbers of `{node.input[0]}` do not all pass through the cast"
    return "a cast inside a subgraph may lose something" if _lossy_inside(mending) else ""


def _exactly(value: np.ndarray, word: str) -> bool:
    made = as_type(value, word)
    return made is not None and bool(np.array_equal(made.astype(np.float64), value.astype(np.float64), equal_nan=True))


def _lossy_inside(mending: Mending) -> bool:
    """Whether a cast that was put into a subgraph may lose something: floats as whole numbers, or in fewer bits."""
    there, types = graph.value_names(mending.raw), infer(mending.model).of
    for place in graph.places(mending.model):
        node = place.node
        if node.op_type == "Cast" and place.graph is not mending.model.graph and node.output[0] not in there:
            was, to = types.get(node.input[0]), types.get(node.output[0])
            if was is None or to is None or not _widens(was, to):
                return True
    return False


def _widens(was: str, to: str) -> bool:
    """Whether a type holds the numbers of another; a float holds whole numbers as far as its digits go."""
    order = ("float16", "bfloat16", "float", "double")
    if was in dtypes.FLOATS:
        return to in order and was in order and order.index(to) >= order.index(was)
    return to in dtypes.FLOATS or was == "bool" or (to in dtypes.INTEGERS and _bits(to) > _bits(was))


def _bits(word: str) -> int:
    return dtypes.bits(dtypes.ENUM[word]) or 0


def _originals(mending: Mending, known: dict[str, Any]) -> dict[str, Any]:
    """Return the values with those constants as they were that a mend has rewritten in place."""
    return {**known, **{n: v for n, v in graph.constants(mending.raw.graph).items() if n in known}}
