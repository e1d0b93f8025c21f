"""Try each strategy in turn; keep every failure, as the diagnosis may need any of them."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torchferry import eager
from torchferry.capture import patches, strategies
from torchferry.foreign.torch_export import LOGGERS
from torchferry.records import Attempt, Fault, Finding


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the attempts came to: a program, or none; and each attempt with what stopped it."""

    program: Any
    strategy: str
    attempts: tuple[Attempt, ...]
    notes: list[Finding] = field(default_factory=list)  # what the patches saw on the way

    def then(self, later: Outcome) -> Outcome:
        """Return what these attempts and later ones came to."""
        return Outcome(later.program, later.strategy, (*self.attempts, *later.attempts), [*self.notes, *later.notes])


def attempt(module: Any, args: tuple[Any, ...], shapes: Any, chosen: tuple[strategies.Strategy, ...] | None = None) -> Outcome:
    """Return the first program that a strategy gives, and what stopped the ones before it."""
    attempts: list[Attempt] = []
    notes: list[Finding] = []
    for strategy in chosen or strategies.ordered():
        began = time.perf_counter()
        try:
            program = once(strategy, module, args, shapes, notes)
        except Exception as error:  # torch may raise anything about a model; each failure is evidence
            attempts.append(Attempt(strategy.name, Fault.of(error), time.perf_counter() - began))
            continue
        attempts.append(Attempt(strategy.name, None, time.perf_counter() - began))
        return Outcome(program, strategy.name, tuple(attempts), notes)
    return Outcome(None, "", tuple(attempts), notes)


def once(
    strategy: strategies.Strategy, module: Any, args: tuple[Any, ...], shapes: Any, notes: list[Finding] | None = None
) -> Any:
    """Return a strategy's program for a module of which a capture may spoil the state; globals are left as they were."""
    with patches.active(module, [] if notes is None else notes), eager.untouched_process(), eager.balanced(), _quiet():
        return strategy.run(module, eager.clone(args), strategies.moving(shapes))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # torch prints whole graphs to stderr when a capture fails; all of it is in the exception as well
    speaking = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in speaking]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            for logger in speaking:  # their handlers keep the stderr of when torch was imported
                logger.disabled = True
            yield
        finally:
            for logger, silent in zip(speaking, before, strict=True):
                logger.disabled = silent
