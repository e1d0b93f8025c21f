"""Sizes that move: arithmetic on them stays in the graph, and what the capture assumed about them is told."""

from __future__ import annotations

import copy
import linecache
import math

import numpy as np
import pytest
import sympy
import torch
from bound import agrees, bound, captured, healed
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils._sympy.functions import FloorDiv

from torchferry.capture.patches import quotients
from torchferry.edits.capture import Piecewise, Rewrite
from torchferry.guards import holds, symbols, words
from torchferry.records.findings import GuardNarrows


class Arithmetic(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        k = max(1, int(n * 0.3))
        half = int(np.ceil(n / 2))
        flat = x.reshape(int(np.prod(x.shape)))
        scale = math.sqrt(n) + float(len(x)) + np.sqrt(n) + math.log(n)
        return x.topk(k, 1).values.sum(1) + x[:, :half].sum(1) * scale + flat.sum() * torch.tensor([n, half]).sum()


class Positions(nn.Module):
    def forward(self, x):
        return x + torch.linspace(0, 1, x.shape[1])


class Chunks(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        whole = torch.div(n, 4, rounding_mode="trunc") + torch.div(-n, 4, rounding_mode="trunc") + torch.floor_divide(n, 4)
        return x[:, : 4 * whole].view(x.shape[0], whole, 4).amax(2)


class Scaled(nn.Module):
    def forward(self, x):
        return nn.functional.interpolate(x, scale_factor=(x.shape[2] + 0.1) / 4, mode="bicubic", align_corners=False)


class LongOrShort(nn.Module):
    def forward(self, x):
        if x.shape[1] > 8:
            return x.mean(1)
        return x.amax(1)


class ShortMiddleLong(nn.Module):
    def forward(self, x):
        if x.shape[1] > 8:
            return x.amax(1)
        return x.mean(1) if x.shape[1] > 4 else x.sum(1) * 2


class Rounded(nn.Module):
    """Powers of two, where a logarithm that is a hair too small would lose one."""

    def forward(self, x):
        n = x.shape[1]
        levels = math.floor(math.log2(n)) + math.ceil(math.log10(n)) + math.trunc(math.log(n)) + round(math.log2(n))
        return x * round(n / 3, 2) + levels, x[:, : math.floor(math.log2(n))]


class Modulo(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        if n % 4 != 0:
            x = nn.functional.pad(x, (0, 4 - n % 4))
        return x.reshape(x.shape[0], -1, 4).sum(-1).amax(1)


class Halves(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], x.shape[1] // 2, 2, -1).sum(2)


class Padded(nn.Module):
    def forward(self, x):
        p = (4 - x.shape[1] % 4) % 4
        if p:
            x = nn.functional.pad(x, (0, 0, 0, p))
        b, n, c = x.shape
        return x.reshape(b, n // 4, 4, c).mean(2)


class Windows(nn.Module):
    def forward(self, x):
        rows, columns = x.shape[1:]
        down, right = -rows % 4, -columns % 4
        if down > 0 or right > 0:
            x = nn.functional.pad(x, (0, right, 0, down))
        parts = x.reshape(-1, x.shape[1] // 4, 4, x.shape[2] // 4, 4)
        return (parts - parts.amax((2, 4), keepdim=True)).reshape(x.shape)[:, :rows, :columns]


BOTH = {0: {0: "batch", 1: "length"}}


@pytest.mark.parametrize("model", [Arithmetic(), Positions(), Chunks()])
def test_arithmetic_on_a_moving_size_is_right_at_other_sizes(model: nn.Module) -> None:
    step = captured(bound(model, (torch.rand(2, 9),), BOTH))
    assert agrees(step, model, (torch.rand(2, 9),), (torch.rand(3, 14),), (torch.rand(1, 4),))


def test_numbers_made_of_a_size_are_rounded_as_python_rounds_them() -> None:
    step = captured(bound(Rounded(), (torch.rand(2, 9),), BOTH))
    assert agrees(step, Rounded(), *((torch.rand(2, n),) for n in (4, 8, 9, 10, 16, 100, 128)))


def test_a_scale_factor_made_of_sizes_resizes_as_eager_does() -> None:
    model = Scaled()
    step = captured(bound(model, (torch.rand(1, 2, 6, 7),), {0: {2: "height", 3: "width"}}))
    assert agrees(step, model, (torch.rand(1, 2, 6, 7),), (torch.rand(1, 2, 9, 5),))


def test_a_guard_is_told_in_the_user_s_words_at_the_user_s_line() -> None:
    step = captured(bound(LongOrShort(), (torch.rand(2, 12, 3),), {0: {0: "batch", 1: "length"}}))
    found = next(f for f in step.findings if isinstance(f, GuardNarrows))
    assert found.guard == "length > 8"
    assert holds("length > 8", found.sizes) is False
    assert found.location is not None
    assert "if x.shape[1] > 8:" in linecache.getline(__file__, found.location.line)  # type: ignore[arg-type]


def test_the_branch_behind_a_guard_can_be_put_into_the_graph() -> None:
    model = LongOrShort()
    what = bound(model, (torch.rand(2, 12, 3),), {0: {1: "length"}})
    found = next(f for f in captured(what).findings if isinstance(f, GuardNarrows))
    step = captured(what, Rewrite(found.sites[:1]))
    assert agrees(step, model, *[(torch.rand(2, n, 3),) for n in (1, 8, 9, 20)])


def test_pieces_are_captured_on_both_sides_of_a_guard_and_joined() -> None:
    model = Modulo()
    what = bound(model, (torch.rand(2, 8),), {0: {1: "length"}})
    step = captured(what, Piecewise("Eq(Mod(length, 4), 0)"))
    assert step.value is not None, step.fault
    assert step.value.strategy == "piecewise"
    assert agrees(step, model, *[(torch.rand(2, n),) for n in (3, 4, 8, 9)])


def test_more_than_two_pieces_are_joined() -> None:
    model = ShortMiddleLong()
    what = bound(model, (torch.rand(2, 12),), {0: {0: "batch", 1: "length"}})
    step = captured(what, Piecewise("length > 8"))
    assert agrees(step, model, *[(torch.rand(2, n),) for n in (1, 4, 5, 8, 9, 20)])


def test_one_piece_is_enough_where_it_is_right_on_both_sides() -> None:
    model = Padded()
    what = bound(model, (torch.rand(2, 8, 3),), {0: {0: "batch", 1: "length", 2: "width"}})
    found = next(f for f in captured(what).findings if isinstance(f, GuardNarrows))
    step = captured(what, Piecewise(found.guard))
    assert agrees(step, model, *[(torch.rand(b, n, 3),) for b, n in ((1, 1), (2, 4), (3, 7), (2, 12))])
    assert not any("cond" in str(n.target) for n in step.value.program.graph.nodes)


def test_a_program_for_sizes_that_no_window_divides_is_right_for_all_of_them() -> None:
    model = Windows()
    what = bound(model, (torch.rand(2, 8, 12),), {0: {0: "batch", 1: "height", 2: "width"}})
    found = next(f for f in captured(what).findings if isinstance(f, GuardNarrows))
    step = captured(what, Piecewise(found.guard))
    assert agrees(step, model, *[(torch.rand(2, h, w),) for h, w in ((8, 12), (8, 5), (7, 12), (9, 11), (4, 8))])
    assert not any("cond" in str(n.target) for n in step.value.program.graph.nodes)


def test_a_guard_that_divides_by_a_size_which_may_be_zero_stops_nothing() -> None:
    model = Halves()
    step = captured(bound(model, (torch.rand(2, 6, 3),), {0: {0: "batch", 1: "length", 2: "width"}}))
    assert agrees(step, model, (torch.rand(3, 8, 3),))
    assert holds("Eq(Mod(n, floor(n / 2)), 0)", {"n": 1}) is None


def test_conditions_can_be_read_told_and_tested() -> None:
    assert symbols("Eq(Mod(h, 4), w)") == {"h", "w"}
    assert words("Eq(Mod(h, 4), 0)") == "h % 4 == 0"
    assert holds("Eq(floor(n / 4), 2)", {"n": 9}) is True
    assert holds("n > 8", {"m": 9}) is None


class Builtins(nn.Module):
    """Python's own functions on tensors: they compare, and go over the first axis."""

    def forward(self, x):
        return sum(x) / len(x), max(x.mean(), 0.5), min(x[0, 0], x[0, 1], 0.1)


def test_builtins_on_tensors_pick_as_python_does() -> None:
    calls = [(torch.rand(3, 2),), (-torch.rand(5, 2),), (torch.full((1, 2), float("nan")),)]
    program = captured(bound(Builtins(), calls[0], {0: {0: "batch"}})).value.program.module(check_guards=False)
    for call in calls:
        for wanted, given in zip(Builtins()(*call), program(*call), strict=True):
            torch.testing.assert_close(given, torch.as_tensor(wanted), equal_nan=True)


class Logarithms(nn.Module):
    """Numbers that numpy made of a size are rounded, turned into whole numbers and used as a size again."""

    def forward(self, x):
        n = int(2 * np.ceil(np.log(x.shape[1])).astype("int").item())
        n = n if n < x.shape[1] else x.shape[1]
        return x[:, :n]


def test_numpy_goes_on_with_what_it_made_of_a_size() -> None:
    step = healed(bound(Logarithms(), (torch.rand(2, 12),), {0: {0: "batch", 1: "length"}}))
    assert agrees(step, Logarithms(), (torch.rand(1, 30),), (torch.rand(3, 5),))


class PaddedTogether(nn.Module):
    def forward(self, a, b):
        return pad_sequence([a, b], batch_first=True), copy.deepcopy(a) + 1


def test_sequences_are_padded_to_the_longest_whichever_that_is() -> None:
    step = healed(bound(PaddedTogether(), (torch.rand(3, 2), torch.rand(5, 2)), {0: {0: "one"}, 1: {0: "other"}}))
    assert agrees(step, PaddedTogether(), (torch.rand(3, 2), torch.rand(5, 2)), (torch.rand(6, 2), torch.rand(2, 2)))


def test_a_quotient_of_sizes_is_in_lowest_terms_without_a_long_search(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = sympy.symbols("rows columns", positive=True, integer=True)
    monkeypatch.setattr(sympy, "simplify", pytest.fail)
    with quotients.patch(None):
        assert FloorDiv(6 * rows * columns + 4 * rows, 2 * rows * columns) == FloorDiv(3 * columns + 2, columns)
        assert FloorDiv(6 * rows, 4 * rows) == 1
