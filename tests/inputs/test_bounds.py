"""Where sizes end: tables that are looked up in any way, sums of sizes that end together; never how busy the machine is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchferry import eager
from torchferry.errors import FeedError
from torchferry.inputs import bind
from torchferry.inputs.sizes.probing import Prober
from torchferry.records import Bound, Case, Job


def bound(job: Job) -> Bound:
    answer = bind(Case(job))
    assert answer.fault is None, answer.fault
    found: Bound = answer.value
    return found


def ends(found: Bound) -> dict[str, tuple[int | None, str]]:
    return {d.name: (d.high, d.why) for d in found.signature.dims}


class Counted(nn.Embedding):
    """Positions that the table itself counts from the mask, as OPT's does: no hook sees the indices."""

    def forward(self, mask: torch.Tensor) -> torch.Tensor:
        return super().forward(mask.cumsum(1) * mask)


class Buckets(nn.Module):
    """Words, counted positions, and distances in buckets: three tables, of which one ends the length."""

    def __init__(self, *, pad: int = -1) -> None:
        super().__init__()
        self.words, self.far, self.positions, self.pad = nn.Embedding(50, 8), nn.Embedding(8, 8), Counted(33, 8), pad

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(input_ids.shape[1]).clamp(max=7)
        real = (input_ids != self.pad).long()
        return self.words(input_ids) + self.positions(real) + self.far(steps)


def test_a_table_that_counts_by_itself_ends_the_length_and_buckets_do_not() -> None:
    assert ends(bound(Job(Buckets(), (torch.randint(2, 50, (2, 5)),))))["sequence_length"] == (32, "positions has 33 rows")


def test_padding_in_the_example_does_not_hide_where_positions_end() -> None:
    ids = torch.tensor([[5, 6, 1, 7, 1], [8, 1, 1, 9, 4]])
    assert ends(bound(Job(Buckets(pad=1), (ids,))))["sequence_length"][0] == 32


class Continued(nn.Module):
    """New tokens behind old ones, in one table of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 8), nn.Embedding(20, 8)

    def forward(self, input_ids: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        start = past.shape[1]
        return self.words(input_ids) + self.positions(torch.arange(start, start + input_ids.shape[1])) + past.mean()


def test_sizes_that_end_together_are_told_and_kept_together() -> None:
    ids = torch.randint(2, 50, (2, 3))
    found = bound(Job(Continued(), (ids, torch.rand(2, 4, 5))))
    (condition,) = found.signature.conditions
    assert condition.endswith("<= 20")
    assert condition.count("sequence_length") == 2
    found.feeds((ids, torch.rand(2, 17, 5)), {})
    with pytest.raises(FeedError, match="<= 20"):
        found.feeds((ids, torch.rand(2, 18, 5)), {})


def test_a_call_that_takes_too_long_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    real = eager.call_on_made_input

    def slow(module: nn.Module, args: tuple[torch.Tensor, ...], **more: int) -> tuple[torch.Tensor, ...]:
        if args[0].shape[1] > 30:
            raise eager.NoAnswer("busy")
        return real(module, args, **more)

    monkeypatch.setattr(eager, "call_on_made_input", slow)
    assert ends(bound(Job(nn.Sequential(nn.ReLU()), (torch.rand(2, 5),))))["length"] == (None, "")


def test_what_is_found_does_not_hang_on_how_fast_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ends(bound(Job(Buckets(), (torch.randint(2, 50, (2, 5)),))))
    init = Prober.__init__

    def crawling(self: Prober, *args: object, **more: object) -> None:
        init(self, *args, **more)  # type: ignore[arg-type]
        self.seconds_per_call = 1.9

    monkeypatch.setattr(Prober, "__init__", crawling)
    assert ends(bound(Job(Buckets(), (torch.randint(2, 50, (2, 5)),)))) == quick


class Lenient(nn.Module):
    """Takes another number of rows on one side, and mixes them up, as some encoder-decoder models do."""

    def forward(self, sound: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        return words[:, :, None] * sound.reshape(words.shape[0], -1).mean(1)[:, None, None]


def test_an_axis_that_moves_only_with_a_lenient_one_is_tied_to_it() -> None:
    found = bound(Job(Lenient(), (torch.rand(2, 3, 20), torch.rand(2, 4))))
    assert [s.shape[0] for s in found.signature.inputs] == ["batch_size", "batch_size"]
