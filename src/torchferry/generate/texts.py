"""Does it write the same text? Greedy generation on the file beside the eager model's, token by token."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationMixin

from torchferry import eager
from torchferry.progress import Event, tell
from torchferry.records import Difference, Tolerance, Trial


@dataclass(frozen=True, slots=True)
class Writing:
    """One text to continue: the inputs of `generate`, and how."""

    name: str
    inputs: dict[str, torch.Tensor]
    options: dict[str, Any]


def verify_generation(model: Any, runtime: Any, writings: Sequence[Writing], allowed: Tolerance) -> tuple[Trial, ...]:
    """Return a trial for each writing: "agree" when every token is the same and every step's logits are within tolerance."""
    trials = []
    with eager.untouched_by_runs(model), torch.no_grad():
        model.eval()
        for number, writing in enumerate(writings, 1):
            trials.append(_trial(model, runtime, writing, allowed))
            tell(Event("tick", "generate", writing.name, done=number, total=len(writings)))
    return tuple(trials)


def text_writings(vocabulary: int, length: int, most: int | None) -> Iterator[Writing]:
    """Yield what a decoder is asked to continue: short and long prompts, a batch padded on the left, with and without cache.

    length: how many tokens to add; where the model has a window, more than it holds.
    most: the longest text that the model has positions for, None for no end.
    """
    random = torch.Generator().manual_seed(0)

    def prompt(batch: int, size: int) -> torch.Tensor:
        return torch.randint(0, vocabulary, (batch, size), generator=random)

    room = 10**9 if most is None else most
    new = min(length, max(1, room - 8))
    yield _writing("one token", prompt(1, 1), new)
    yield _writing("one prompt", prompt(1, min(7, room - new)), new)
    ids = prompt(3, min(7, room - new))
    mask = torch.ones_like(ids)
    mask[1, : ids.shape[1] // 2] = 0
    mask[2, : ids.shape[1] - 1] = 0
    yield _writing("three prompts padded on the left", ids, new, mask)
    yield _writing("three prompts padded on the left, no cache", ids, min(new, 6), mask, use_cache=False)


def _writing(name: str, ids: torch.Tensor, new: int, mask: torch.Tensor | None = None, **options: Any) -> Writing:
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids) if mask is None else mask}
    return Writing(f"generate: {name}", inputs, {"max_new_tokens": new, **options})


def _trial(model: Any, runtime: Any, writing: Writing, allowed: Tolerance) -> Trial:
    began = time.perf_counter()
    how = {"do_sample": False, "num_beams": 1, "return_dict_in_generate": True, "output_logits": True, **writing.options}
    # the plain `generate` on both sides: some models wrap their own around it, to cut speech into pieces for instance
    wanted = GenerationMixin.generate(model, **_copies(writing.inputs), **how)
    got = runtime.generate(**_copies(writing.inputs), **how)
    differences, worst, most = _compare(wanted, got, allowed)
    return Trial(
        name=writing.name,
        sizes={"batch_size": next(iter(writing.inputs.values())).shape[0]},
        values="generate",
        seed=0,
        outcome="differ" if differences else "agree",
        differences=differences,
        worst=worst,
        max_abs=most,
        seconds=time.perf_counter() - began,
        note=f"{len(wanted.logits)} steps",
    )


def _compare(wanted: Any, got: Any, allowed: Tolerance) -> tuple[tuple[Difference, ...], float, float]:
    """Return what differs, the worst ratio to what is allowed, and the largest difference of a logit.

    A row counts up to the first token that is a tie in the eager model: where two logits are nearer than rounding, either
    may win, and the texts part for good.
    """
    steps = min(len(wanted.logits), len(got.logits))
    first = wanted.sequences.shape[1] - len(wanted.logits)
    counted = torch.ones(wanted.sequences.shape[0], dtype=torch.bool)
    worst = most = 0.0
    for step in range(steps):
        ours, theirs = got.logits[step], wanted.logits[step]
        gap = (ours - theirs).abs()
        room = allowance(theirs, allowed)
        ratio = gap / room
        ratio[ours == theirs] = 0.0  # minus infinity stands for "never" on both sides
        ratio[~counted] = 0.0
        if not bool((ratio <= 1).all()):  # so that NaN counts as different
            found = (_logits_differ(step, ratio, gap), *_first_other_token(wanted.sequences[:, first:], got.sequences[:, first:]))
            return found, float(ratio.nan_to_num(nan=torch.inf).max()), float(gap.max())
        worst, most = max(worst, float(ratio.max())), max(most, float(gap[counted].max()) if counted.any() else 0.0)
        mine, yours = got.sequences[:, first + step], wanted.sequences[:, first + step]
        for row in torch.nonzero(counted & (mine != yours)).flatten().tolist():
            a, b = int(mine[row]), int(yours[row])
            if float((theirs[row, b] - theirs[row, a]).abs()) > 2 * float(room[row, b]):
                return (_tokens_differ(step, row, a, b),), worst, most
            counted[row] = False
    if len(wanted.logits) != len(got.logits) and bool(counted.all()):
        return (
            (Difference("tokens", "shape", f"{len(got.logits)} tokens were written, eager writes {len(wanted.logits)}"),),
            worst,
            most,
        )
    return (), worst, most


def allowance(logits: torch.Tensor, allowed: Tolerance) -> torch.Tensor:
    """Return how far each logit may be off; those that a processor set to minus infinity have no spread."""
    finite = logits[logits.isfinite()]
    spread = float(finite.std()) if finite.numel() > 1 else 0.0
    return allowed.share * spread + allowed.rtol * logits.abs() + allowed.atol


def _logits_differ(step: int, ratio: torch.Tensor, gap: torch.Tensor) -> Difference:
    row, token = divmod(int(ratio.nan_to_num(nan=torch.inf).argmax()), ratio.shape[-1])
    words = f"off by {float(gap[row, token]):.3g} at step {step} (row {row}, token {token})"
    return Difference(
        "logits", "value", words, max_abs=float(gap[row, token]), at=(row, step, token), ratio=float(ratio[row, token])
    )


def _tokens_differ(step: int, row: int, mine: int, yours: int) -> Difference:
    return Difference("tokens", "value", f"token {mine} at step {step} of row {row}, eager writes {yours}", at=(row, step))


def _first_other_token(wanted: torch.Tensor, got: torch.Tensor) -> Iterator[Difference]:
    """Yield the first token that is another one, if any is."""
    steps = min(wanted.shape[1], got.shape[1])
    for step, row in torch.nonzero((got[:, :steps] != wanted[:, :steps]).T)[:1].tolist():
        yield _tokens_differ(step, row, int(got[row, step]), int(wanted[row, step]))


def _copies(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in inputs.items()}
