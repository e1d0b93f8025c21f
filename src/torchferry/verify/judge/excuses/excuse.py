"""An excuse: a claim that some numbers differ for an innocent reason, and the proof that each of them needs.

An excuse speaks for elements, never for a trial, and proves its claim by running something: eager with garbage under the
mask, eager with its roundings moved, the file from eager's own steps, the same call within the model's range. What it has
not proven counts as different. Each has examples that it must grant and examples that it must refuse, which one test runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from torchferry.records import Location, Outcome
from torchferry.verify.arrays import Array
from torchferry.verify.run.both_sides import Call

if TYPE_CHECKING:
    from torchferry.verify.judge.trial import Bench
    from torchferry.verify.trials.plans import TrialPlan


@dataclass(frozen=True, slots=True)
class Plea:
    """What an excuse is asked about: one trial, both sides' outputs, and which of their elements nothing explains so far."""

    bench: Bench
    plan: TrialPlan
    args: Call
    want: Sequence[Array]
    got: Sequence[Array]
    open: Sequence[Array]  # booleans, an array for each output


@dataclass(frozen=True, slots=True)
class Proof:
    """What was shown: the elements that are explained, and what to say of it."""

    elements: Sequence[Array]
    note: str
    outcome: Outcome
    place: Location | None = None
    harmless: bool = True  # False: innocent as the reason is, whoever uses the file gets something else


@dataclass(frozen=True, slots=True)
class Example:
    """A model and the model that its file is made of, with a call; for the tests of an excuse."""

    model: torch.nn.Module
    twin: torch.nn.Module
    args: Call
    values: str = "example"  # what such values are called among the trials


@dataclass(frozen=True, slots=True)
class Excuse:
    """One innocent reason: what it claims, how it is proven, what it must grant and what it must refuse."""

    claim: str
    prove: Callable[[Plea], Proof | None]
    right: Callable[[], Sequence[Example]]  # calls that differ, and differ for this reason alone
    wrong: Callable[[], Sequence[Example]]  # calls that look the same and differ for another
