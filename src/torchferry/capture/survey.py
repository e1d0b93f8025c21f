"""What there is in a model, or in its program, that a capture stumbles over or quietly freezes: facts for the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torchferry.capture import prepare, source_map
from torchferry.foreign.torch_modules import ACTS_IN_TRAINING
from torchferry.foreign.torch_operators import schema_name
from torchferry.records import Bound, Finding, Location
from torchferry.records.findings import DropoutOn, PartInTraining

DROPOUTS = {f"aten::{kind}dropout" for kind in ("", "feature_", "alpha_", "feature_alpha_", "native_")}


def of_module(bound: Bound) -> Iterator[Finding]:
    """Yield what a model is made of that matters: parts that no capture can follow, and parts that are training."""
    yield from prepare.survey(bound.module, bound.args)
    for path, part in bound.module.named_modules():
        name = path.removeprefix(bound.prefix) or path
        if _is_training(part):
            yield PartInTraining(name, type(part).__name__, location=Location(module_path=name))


def of_program(program: Any, bound: Bound) -> Iterator[DropoutOn]:
    """Yield what a program does that its model may not mean: dropout that is on."""
    training = any(_is_training(m) for m in bound.module.modules())
    for node in program.graph.nodes:
        if node.op == "call_function" and _is_dropout(node) and not training:
            yield DropoutOn(location=source_map.of_node(node))


def _is_training(part: torch.nn.Module) -> bool:
    """Whether a part is in training mode and acts otherwise in it: by what it is, or by a dropout of its own."""
    drops = isinstance(part, torch.nn.RNNBase | torch.nn.MultiheadAttention) and part.dropout > 0
    return (drops or isinstance(part, ACTS_IN_TRAINING)) and part.training


def _is_dropout(node: Any) -> bool:
    return schema_name(node.target) in DROPOUTS and len(node.args) > 2 and node.args[2] is True and node.args[1] != 0
