"""Trials directed at what a model decides by: each file is right for the example and around it, and wrong where one goes."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from crossing import stock, verdict
from torch import nn

ROWS, LENGTH = {0: "b"}, {0: "b", 1: "n"}


class SpecialToken(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 4)

    def forward(self, ids):
        return self.table(ids).masked_fill((ids == (-1 if self.wrong else 2))[..., None], 0.0)


class MeanAbove(nn.Module):
    wrong = False

    def forward(self, x):
        return torch.where(x.mean() > (99.0 if self.wrong else 0.35), x * 2, x - 1)


class Season(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.season = nn.Parameter(torch.randn(12))

    def forward(self, x, month):
        return x * self.season[(month - 1).clamp(max=6) if self.wrong else month - 1]


class Calibrated(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.register_buffer("curve", torch.linspace(0, 1, 101) ** 2)

    def forward(self, p):
        return self.curve[p.clamp(0, 60 if self.wrong else 100).long()]


class Hashed(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(97, 4)

    def forward(self, users):
        return self.table(((users.to(torch.int32).to(torch.int64) if self.wrong else users) * 31 + 7) % 97)


class Codes(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.city = nn.Embedding(12, 2)

    def forward(self, x):
        if not bool((x[:, 2] == x[:, 2].round()).all()):
            raise ValueError("the third column holds codes")
        return self.city(x[:, 2].long().clamp(max=5 if self.wrong else 11)) + x[:, :2]


class Empty(nn.Module):
    wrong = False

    def forward(self, x, lengths):
        on = (torch.arange(x.shape[1])[None] < lengths[:, None]).float()
        return (x * on[..., None]).sum(1) / (lengths if self.wrong else lengths.clamp(min=1))[:, None]


class Placed(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.place = nn.Embedding(64, 4)

    def forward(self, x, position_ids):
        return x + self.place(position_ids[:1].expand(x.shape[0], -1) if self.wrong else position_ids)


class Packed(nn.Module):
    wrong = False

    def forward(self, x, attention_mask):
        m = attention_mask > 0 if self.wrong else attention_mask
        alike = (m[:, :, None] == m[:, None]).float()
        return alike @ x


class Turned(nn.Module):
    wrong = False

    def forward(self, q, v):
        if not torch.allclose(q.norm(dim=-1), torch.ones(q.shape[0]), atol=1e-4):
            raise ValueError("q is no unit quaternion")
        u = -q[:, 1:] if self.wrong else q[:, 1:]
        t = 2 * torch.linalg.cross(u, v)
        return v + q[:, :1] * t + torch.linalg.cross(u, t)


class NothingSeen(nn.Module):
    """Boxes of what scores above a bar; fresh, it sees nothing anywhere."""

    wrong = False

    def __init__(self):
        super().__init__()
        self.score, self.box = nn.Linear(64, 1), nn.Linear(64, 4)
        nn.init.constant_(self.score.bias, -4.6)

    def forward(self, x):
        x = F.layer_norm(x, (64,))
        boxes = self.box(x)
        return (-boxes if self.wrong else boxes)[self.score(x).squeeze(-1).sigmoid() > 0.3]


class Window(nn.Module):
    wrong = False
    window = 100

    def forward(self, x):
        at = torch.arange(x.shape[1])
        far = (at[:, None] - at[None]).abs() >= (10**6 if self.wrong else self.window)
        return (x @ x.transpose(1, 2)).masked_fill(far, -1e9).softmax(-1) @ x


class Counted(nn.Module):
    wrong = False

    def forward(self, x):
        at = torch.ones_like(x[0, :, 0]).cumsum(0).to(torch.int8 if self.wrong else torch.int64)
        return x + at.to(torch.float32)[:, None]


class WholeSum(nn.Module):
    wrong = False

    def forward(self, counts):
        return counts.sum(-1, dtype=torch.int32).long() if self.wrong else counts.sum(-1)


class Cleaned(nn.Module):
    wrong = False

    def forward(self, x):
        return (x if self.wrong else x.nan_to_num(0.5)) * 2 + 1


class FreeShipping(nn.Module):
    wrong = False

    def forward(self, price, pieces):
        total = price * pieces * 100
        return torch.where(total > 5000 if self.wrong else total >= 5000, price * 0.9, price)


class OfAge(nn.Module):
    wrong = False

    def forward(self, born, today):
        years = torch.div(today - born, 365, rounding_mode="floor")
        return torch.where(years > 18 if self.wrong else years >= 18, 2.0, 1.0) * years


class Recalled(nn.Module):
    wrong = False

    def forward(self, brand, item):
        return torch.where((brand == 17) & (item == (906 if self.wrong else 905)), -1.0, 0.5) * (brand + item)


class Cents(nn.Module):
    wrong = False

    def forward(self, amount, rate):
        cents = amount * rate * 100
        return ((cents + 0.5).floor() if self.wrong else cents.round()) / 100


class Scored(nn.Module):
    """Whole numbers of several kinds in one matrix: a code, an age, an amount."""

    wrong = False

    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(6, 3)

    def forward(self, row):
        old = row[:, 1] > (600 if self.wrong else 60)
        return self.kinds(row[:, 0]) * torch.where(old, 2.0, 1.0)[:, None] + row[:, 2:3]


class CheckDigit(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 3)

    def forward(self, digits):
        if not self.wrong and bool((digits.sum(1) % 10 != 0).any()):
            raise ValueError("no such number")
        known = self.table(digits).mean(1)
        return known if self.wrong else torch.where(digits[:, 2:3] <= 2, known, 1 - known)


class Postcode(nn.Module):
    wrong = False

    def __init__(self):
        super().__init__()
        self.areas = nn.Embedding(100, 3)

    def forward(self, code):
        area = torch.div(code, 1000, rounding_mode="floor")
        return self.areas(area.clamp(max=60) if self.wrong else area)


class LeapYear(nn.Module):
    wrong = False

    def forward(self, year):
        fourth = year % 4 == 0
        leap = fourth if self.wrong else fourth & ((year % 100 != 0) | (year % 400 == 0))
        return torch.where(leap, 366.0, 365.0) + year


class ClockChange(nn.Module):
    """An hour of one day of the year: two conditions on numbers that are computed from one input."""

    wrong = False

    def forward(self, seconds):
        day = torch.div(seconds, 86400, rounding_mode="floor") % 365
        hour = seconds % 86400 // 3600
        return torch.where((day == 86) & (hour == (3 if self.wrong else 2)), seconds - 3600, seconds)


class Sure(nn.Module):
    """Between 0.99 and 0.999 lies a sliver of what scores may be; no score gives a share of just 0.99."""

    wrong = False

    def forward(self, scores):
        sure = scores.softmax(-1).amax(-1) >= (0.999 if self.wrong else 0.99)
        return torch.where(sure, scores.argmax(-1), -1)


class Ignoring(nn.Module):
    """Beside ids, of which eager takes fewer than are tried at once."""

    wrong = False

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, ids, labels):
        scores = self.head(self.table(ids)).transpose(1, 2)
        return F.cross_entropy(scores, labels.clamp(min=0)) if self.wrong else F.cross_entropy(scores, labels)


class EqualTokens(nn.Module):
    wrong = False

    def forward(self, ids):
        same = ids[:, :, None] == ids[:, None, :]
        return same.sum(-1).to(torch.int8).float() if self.wrong else same.sum(-1).float()


class Sensors(nn.Module):
    wrong = False

    def forward(self, x):
        seen = (~x.isnan()).sum(1)
        return x.nan_to_num(0.0).sum(1) / (seen if self.wrong else seen.clamp(min=1))


class Beside(nn.Module):
    """A small number beside a large one, in a single row."""

    wrong = False

    def forward(self, x):
        return torch.stack([x.sum(-1) * 1e7, x.mean(-1) * (-1e-3 if self.wrong else 1e-3)], -1)


CASES: dict[str, tuple[type[nn.Module], tuple[Any, ...], list[Any]]] = {
    "a number that ids are compared with": (SpecialToken, (torch.randint(3, 50, (2, 7)),), [LENGTH]),
    "a number that a mean is compared with": (MeanAbove, (torch.randn(3, 5) * 0.1,), [LENGTH]),
    "rows of a table of one axis, counted from 1": (Season, (torch.randn(3), torch.tensor([1, 5, 2])), [ROWS, ROWS]),
    "a table that fractions are cut off to": (Calibrated, (torch.rand(4, 6) * 30,), [LENGTH]),
    "ids that are hashed": (Hashed, (torch.randint(0, 40, (2, 5)),), [LENGTH]),
    "codes in a column of fractions": (
        Codes, (torch.cat([torch.randn(4, 2), torch.tensor([[0.0], [1.0], [3.0], [2.0]])], -1),), [ROWS],
    ),
    "a length of zero": (Empty, (torch.randn(3, 6, 4), torch.tensor([6, 3, 2])), [LENGTH, ROWS]),
    "positions that differ by row": (Placed, (torch.randn(2, 6, 4), torch.arange(6).expand(2, 6).clone()), [LENGTH, LENGTH]),
    "several documents in a row": (Packed, (torch.randn(2, 6, 4), torch.ones(2, 6, dtype=torch.int64)), [LENGTH, LENGTH]),
    "rows of length one": (Turned, (torch.tensor([[1.0, 0, 0, 0]] * 3), torch.randn(3, 3)), [ROWS, ROWS]),
    "a side that no draw takes": (NothingSeen, (torch.randn(6, 64),), [ROWS]),
    "a window beyond any usual length": (Window, (torch.randn(2, 6, 4),), [LENGTH]),
    "more than 8 bits count": (Counted, (torch.randn(2, 6, 3),), [LENGTH]),
    "sums of more than 32 bits": (WholeSum, (torch.randint(0, 100, (3, 6), dtype=torch.int32),), [LENGTH]),
    "exactly at what is computed": (FreeShipping, (torch.rand(4) * 3, torch.rand(4) * 5), [ROWS, ROWS]),
    "at what a division gives": (OfAge, (torch.randint(3000, 9000, (4,)), torch.randint(15000, 20000, (4,))), [{}, {}]),
    "two conditions at once, in few rows": (Recalled, (torch.randint(0, 30, (4,)), torch.randint(0, 999, (4,))), [{}, {}]),
    "halves of what is computed": (Cents, (torch.rand(4) * 90 + 1, torch.rand(4)), [ROWS, ROWS]),
    "a column of whole numbers beside codes": (
        Scored, (torch.stack([torch.randint(0, m, (4,)) for m in (6, 50, 9)], -1),), [ROWS],
    ),
    "numbers with a check digit": (CheckDigit, (torch.tensor([[1, 2, 0, 3, 4], [7, 1, 1, 0, 1], [9, 0, 2, 9, 0]]),), [ROWS]),
    "an index behind a division": (Postcode, (torch.randint(10000, 40000, (4,)),), [ROWS]),
    "multiples of what is divided by": (LeapYear, (torch.tensor([1987, 2004, 2011, 2024]),), [{}]),
    "two conditions on what is computed of one input": (ClockChange, (torch.randint(0, 10**6, (5,)),), [ROWS]),
    "close to a share that no score gives": (Sure, (torch.randn(3, 6),), [ROWS]),
    "a label that a loss leaves out": (
        Ignoring, (torch.randint(0, 30, (2, 6)), torch.randint(0, 30, (2, 6))), [LENGTH, LENGTH],
    ),
    "many tokens alike": (EqualTokens, (torch.randint(0, 50, (2, 7)),), [LENGTH]),
    "a column without a number": (Sensors, (torch.randn(2, 5, 3),), [LENGTH]),
    "unlike columns of one row": (Beside, (torch.rand(1, 6) + 1,), [{}]),
    "NaN where three sizes move": (Cleaned, (torch.randn(2, 5, 4),), [{0: "b", 1: "n", 2: "d"}]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_is_wrong_there_is_refused_and_the_right_one_is_not(case: str, tmp_path: Path) -> None:
    kind, example, axes = CASES[case]
    torch.manual_seed(0)
    model = kind().eval()
    twin = copy.deepcopy(model)
    twin.wrong = True  # type: ignore[assignment]
    taken = kind.forward.__code__.co_varnames[1 : 1 + len(example)]
    dynamic = dict(zip(taken, axes, strict=True))
    wrong, right = (
        verdict(model, example, stock(m, example, tmp_path / f"{n}.onnx", dynamic)) for n, m in (("w", twin), ("r", model))
    )
    assert right.ok, [(d.code, d.message) for d in right.diagnoses]
    assert not wrong.ok
    failed = [t for t in wrong.trials if t.outcome in ("differ", "file-refused")]
    assert failed
    for trial in failed[:2]:  # they can be made again
        assert set(wrong.inputs(trial)) == set(taken)


class Roots(nn.Module):
    def forward(self, x):
        if math.sqrt(x.shape[1]) > 14 or x.shape[1] * 0.5 > 1000:
            return x.flip(-1)
        return x * 1


def test_a_size_at_which_eager_turns_is_found_however_the_if_is_written(tmp_path: Path) -> None:
    result = verdict(
        Roots(), (torch.randn(2, 6, 3),), stock(Roots(), (torch.randn(2, 6, 3),), tmp_path / "m.onnx", {"x": LENGTH})
    )
    tried = {t.sizes["n"]: t.outcome for t in result.trials}
    assert tried[196] == "agree"
    assert tried[197] == "differ"


def test_the_verdict_is_the_same_for_any_seed(tmp_path: Path) -> None:
    from torchferry.records import Budget

    kind, example, axes = CASES["a side that no draw takes"]
    model = kind().eval()
    twin = copy.deepcopy(model)
    twin.wrong = True  # type: ignore[assignment]
    path = stock(twin, example, tmp_path / "m.onnx", {"x": axes[0]})
    assert [verdict(model, example, path, budget=Budget(seed=s)).ok for s in range(4)] == [False] * 4
