"""Both sides of every decision: which were taken, in the file and in eager, in the trials that agree.

A comparison is true or false, a condition too; a clip has its argument below, within and above its bounds. What hangs on sizes
alone is not counted in the file: an exporter's own reckoning with shapes is full of comparisons that come out one way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import schema_of
from torchferry.records import Fault
from torchferry.verify.arrays import Array
from torchferry.verify.coverage.mutants import with_values
from torchferry.verify.explain.provenance import place_of_node
from torchferry.verify.judge.trial import Judged
from torchferry.verify.run.eager_trace import op_name, place_of
from torchferry.verify.run.intermediates import Inside

COMPARING = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "IsNaN", "IsInf")
EAGER_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_not", "isfinite")
EAGER_CHOOSING = ("where", "masked_fill", "masked_select", "_local_scalar_dense")  # their condition decides
EAGER_CLIPPING = ("clamp", "clamp_min", "clamp_max", "hardtanh")
Sides = dict[tuple[str, str], bool]  # (decision, side) -> whether it was taken


@dataclass(slots=True)
class Branches:
    """The sides of all decisions."""

    sides: Sides = field(default_factory=dict)

    def see(self, decision: str, side: str, taken: bool) -> None:
        """Keep that a side was, or was not, taken."""
        self.sides[decision, side] = self.sides.get((decision, side), False) or taken

    def see_both(self, decision: str, truth: Array) -> None:
        """Keep which ways a condition came out."""
        for side, taken in (("true", bool(np.any(truth))), ("false", bool(np.any(~truth)))):
            self.see(decision, side, taken)

    @property
    def untaken(self) -> tuple[str, ...]:
        """The sides that no trial took, in words."""
        return tuple(f"{decision} was never {side}" for (decision, side), taken in self.sides.items() if not taken)


def in_file(branches: Branches, inside: Inside, trials: Sequence[Judged]) -> None:
    """Keep the sides that the file takes in some trials."""
    decisions = list(_decisions(inside.model.graph, inside))
    wanted = sorted({n for d in decisions for n in d.needs if n in inside.names})
    for judged in trials if wanted else ():
        feeds = inside.sides.feeds(judged.args)
        got = inside.sides.worker.run(inside.session, feeds, wanted)
        if isinstance(got, Fault):
            continue
        values = {**inside.constants, **feeds, **dict(zip(wanted, got, strict=True))}
        for decision in decisions:
            if all(n in values for n in decision.needs):
                decision.look(branches, values)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A node of the file that decides something, and the values that tell how."""

    name: str
    kind: str
    needs: tuple[str, ...]

    def look(self, branches: Branches, values: Mapping[str, Array]) -> None:
        """Keep how it came out in one trial."""
        given = [values[n] for n in self.needs]
        if self.kind in ("below", "above"):
            far = given[0] < given[1] if self.kind == "below" else given[0] > given[1]
            branches.see(self.name, f"{self.kind} its bound", bool(np.any(far)))
            branches.see(self.name, "within its bound", bool(np.any(~far)))
        else:
            branches.see_both(self.name, given[0].astype(bool))


def _decisions(graph: onnx.GraphProto, inside: Inside) -> Iterator[_Decision]:
    telling = with_values(graph)
    compared: set[str] = set()
    for node in graph.node:
        if not telling & set(node.output):
            continue
        place = place_of_node(node, inside.sides.file.provenance)
        at = f" at {place.brief}" if place.line else ""
        name = f"`{node.op_type}`{at or f' (node `{node.name}`)'}"
        if node.op_type in COMPARING:
            compared.add(node.output[0])
            yield _Decision(name, "both", (node.output[0],))
        elif node.op_type == "If" or (node.op_type == "Where" and node.input[0] not in compared and node.input[0] in telling):
            yield _Decision(name, "both", (node.input[0],))
        elif node.op_type == "Clip":
            bounds = [*node.input[1:], "", ""][:2]
            yield from (_Decision(name, k, (node.input[0], b)) for k, b in zip(("below", "above"), bounds, strict=True) if b)
        elif node.op_type in ("Max", "Min") and len(node.input) == 2:
            yield _Decision(name, "below" if node.op_type == "Max" else "above", tuple(node.input))


def in_eager(branches: Branches, module: torch.nn.Module, trials: Sequence[Judged], prefix: str) -> None:
    """Keep the sides that eager takes in some trials."""
    for judged in trials:
        twin = eager.fresh(module)
        names = {id(m): n.removeprefix(prefix.rstrip(".")).lstrip(".") for n, m in twin.named_modules()}
        try:
            with _Deciding(branches, names):
                eager.call(twin, judged.args)
        except Exception:  # torch.cond and its like do not bear being watched
            return


class _Deciding(Watching):
    def __init__(self, branches: Branches, names: dict[int, str]) -> None:
        super().__init__()
        self.branches, self.names = branches, names

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = op_name(func).rstrip("_")
        clipped = args[0].detach().clone() if name in EAGER_CLIPPING else None
        out = func(*args, **kwargs)
        if name not in EAGER_COMPARING and name not in EAGER_CHOOSING and name not in EAGER_CLIPPING:
            return out
        place = place_of(self.names)
        if place is None or place.line is None:
            return out
        decision = f"`{name}` at {place.brief}"
        if clipped is not None:
            self._clip(decision, func, clipped, args, kwargs)
        elif name in EAGER_COMPARING and isinstance(out, torch.Tensor):
            self._both(decision, out)
        else:
            condition = args[1] if name in ("masked_fill", "masked_select") else args[0]
            if isinstance(condition, torch.Tensor) and condition.dtype == torch.bool:
                self._both(decision, condition)
        return out

    def _both(self, decision: str, truth: torch.Tensor) -> None:
        self.branches.see(decision, "true", bool(truth.any()))
        self.branches.see(decision, "false", bool((~truth).any()))

    def _clip(self, decision: str, func: Any, given: torch.Tensor, args: Any, kwargs: Any) -> None:
        named = {a.name: v for a, v in zip(schema_of(func).arguments, args, strict=False)} | dict(kwargs)
        for word, bound in (("below", named.get("min", named.get("min_val"))), ("above", named.get("max", named.get("max_val")))):
            if bound is not None:
                far = given < bound if word == "below" else given > bound
                self.branches.see(decision, f"{word} its bound", bool(far.any()))
                self.branches.see(decision, "within its bound", bool((~far).any()))
