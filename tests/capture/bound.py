"""The inputs stage in small, so that a test of the capture needs no other stage: every axis named moves."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.capture import capture
from torchferry.edits.capture import Rewrite
from torchferry.records import Bound, Case, Dim, Edit, Job, Signature, Step, TensorSpec
from torchferry.records.findings import RewritesFound
from torchferry.repair.search import searched


def bound(model: torch.nn.Module, args: tuple[torch.Tensor, ...], moving: dict[int, dict[int, str]]) -> Bound:
    """Return a model as the capture stage gets it; `moving` names the axes that move, input by input."""
    names = [f"x{i}" for i in range(len(args))]
    specs = [
        TensorSpec(
            name,
            str(a.dtype).removeprefix("torch."),
            tuple(moving.get(i, {}).get(axis, size) for axis, size in enumerate(a.shape)),
        )
        for i, (name, a) in enumerate(zip(names, args, strict=True))
    ]
    dims = tuple(Dim(n) for n in dict.fromkeys(n for axes in moving.values() for n in axes.values()))
    shapes = tuple(dict.fromkeys(moving.get(i, {}), torch.export.Dim.DYNAMIC) or None for i in range(len(args)))

    def vary(sizes: dict[str, int], values: str = "random", seed: int = 0) -> tuple[torch.Tensor, ...]:
        return tuple(
            torch.rand([sizes.get(s, a.shape[k]) if isinstance(s, str) else s for k, s in enumerate(spec.shape)])
            for spec, a in zip(specs, args, strict=True)
        )

    return Bound(_flat(model, names), args, Signature(tuple(specs), dims), ("output",), shapes, vary, lambda *a, **k: {})


def _flat(model: torch.nn.Module, names: list[str]) -> torch.nn.Module:
    given = ", ".join(names)
    space: dict[str, Any] = {"leaves": torch.utils._pytree.tree_leaves}
    code = f"def forward(self, {given}):\n    return self.run(({given},))\n"
    exec(code + "def run(self, tensors):\n    return tuple(leaves(self.model(*tensors)))", space)
    flat = type("Flat", (torch.nn.Module,), {"forward": space["forward"], "run": space["run"]})()
    flat.model = model
    return flat


def captured(what: Bound, *edits: Edit) -> Step:
    """Return the capture stage's answer, with what the search found where it was stopped."""
    case = Case(Job(edits=edits), (Step("inputs", what),))
    return searched(case, capture(case))


def healed(what: Bound) -> Step:
    """Return the answer after the rewrites that the first one offers, if it offers any."""
    step = captured(what)
    found = [f for f in step.findings if isinstance(f, RewritesFound)]
    return captured(what, Rewrite(found[0].sites)) if found else step


def agrees(step: Step, model: torch.nn.Module, *calls: tuple[torch.Tensor, ...]) -> bool:
    """Say whether the captured program computes what the model computes, for each of the calls."""
    assert step.value is not None, step.fault
    program = step.value.program.module(check_guards=False)
    program._forward_pre_hooks.clear()  # torch's own check of sizes, which no file has
    for args in calls:
        wanted = torch.utils._pytree.tree_leaves(model(*(a.clone() for a in args)))
        if not all(torch.allclose(w, g, atol=1e-5) for w, g in zip(wanted, program(*args), strict=True)):
            return False
    return True
