"""Files that load, run, and are wrong: each is caught without being told how, and the line is named."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from crossing import crossed, errors, marked, stock, verdict
from torch import nn

import torchferry


class BranchOnLength(nn.Module):
    def forward(self, x):
        x = x * 2
        if x.shape[1] > 8:  # culprit
            return x.mean(1)
        return x.amax(1)


class NumberFromLength(nn.Module):
    def forward(self, x):
        k = int(x.shape[1] * 0.5)  # culprit
        y = x + 1
        return y.topk(k, dim=1).values


class RootOfLength(nn.Module):
    def forward(self, x):
        y = x @ x.transpose(1, 2)
        return y / math.sqrt(x.shape[1])  # culprit


class MaskShortcut(nn.Module):
    def forward(self, x, mask):
        if not mask.all():  # culprit
            x = x.masked_fill(mask[..., None] == 0, 0.0)
        return x.cumsum(1)


class FloorDivision(nn.Module):
    def forward(self, n):
        m = n * 2
        return m // 3  # culprit


class Underflow(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)

    def forward(self, x):
        y = self.lin(x)
        return nn.functional.logsigmoid(y)  # culprit


class EmptyRow(nn.Module):
    def forward(self, q, bias):
        return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)  # culprit


class OneStep(nn.Module):
    def forward(self, x):
        return x + torch.linspace(0, 1, x.shape[0])  # culprit


class HalfInside(nn.Module):
    def forward(self, x):
        h = x.half()
        return (h * h).mean(-1).float()  # culprit


class DuplicateIndices(nn.Module):
    def forward(self, x, i, s):
        return x.index_add(0, i, s)  # culprit


class EvenLengths(nn.Module):
    """For one token the file joins it with an empty half, and onnxruntime leaves that half of the result unwritten."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 3)

    def forward(self, x):
        if x.shape[1] % 2:  # culprit
            x = nn.functional.pad(x, (0, 0, 0, 1))
        return self.lin(torch.cat([x[:, 0::2], x[:, 1::2]], -1))


class FirstTwenty(nn.Module):
    def forward(self, x):
        y = x[:, :20] * 2
        return y.cumsum(1)


class Twice(nn.Module):
    def forward(self, x):
        y = x * 2
        return y.cumsum(1)


class Placed(nn.Module):
    def __init__(self, given: bool):
        super().__init__()
        self.given, self.table = given, nn.Embedding(16, 4)

    def forward(self, x, position_ids):
        here = position_ids if self.given else torch.arange(x.shape[1]).expand(x.shape[:2])
        return x + self.table(here) + 0 * position_ids[..., None]


LENGTH = {"x": {1: "length"}}
CASES = {
    "a branch on a remainder": (EvenLengths(), (torch.randn(2, 6, 4),), LENGTH),
    "a branch on a length": (BranchOnLength(), (torch.randn(2, 12, 4),), LENGTH),
    "a number from a length": (NumberFromLength(), (torch.randn(2, 8),), LENGTH),
    "a root of a length": (RootOfLength(), (torch.randn(2, 8, 4),), LENGTH),
    "a shortcut for a whole mask": (MaskShortcut(), (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64)), None),
    "floor division of negatives": (FloorDivision(), (torch.tensor([1, 4, 9, 8]),), None),
    "an unstable formula": (Underflow().eval(), (torch.randn(3, 4),), None),
    "a fully masked row": (EmptyRow(), (torch.randn(2, 2, 4, 8), torch.zeros(2, 1, 4, 4)), None),
    "a division by length minus one": (OneStep(), (torch.randn(3),), {"x": {0: "steps"}}),
    "overflow in half precision": (HalfInside(), (torch.randn(2, 64),), None),
    "duplicate indices": (DuplicateIndices(), (torch.randn(7, 3), torch.tensor([1, 4]), torch.randn(2, 3)), None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_file_is_caught_and_the_line_named(name: str, tmp_path: Path) -> None:
    result = crossed(*CASES[name][:2], tmp_path, CASES[name][2])
    assert not result.ok
    assert errors(result)
    assert marked(result), [(d.code, d.message, str(d.location)) for d in result.diagnoses]


def test_state_between_calls_is_caught_at_the_line_that_writes_it(tmp_path: Path) -> None:
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.total.add_(x.mean(0))  # culprit
            return x + self.total

    result = crossed(Counter(), (torch.zeros(2, 4),), tmp_path)
    assert "NUM004" in errors(result)
    assert marked(result)


def test_an_attribute_that_counts_calls_is_caught(tmp_path: Path) -> None:
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1  # culprit
            return x * self.calls

    result = crossed(Counter(), (torch.randn(2, 4),), tmp_path)
    assert "NUM004" in errors(result)
    assert marked(result)


class BatchOfOne(nn.Module):
    def forward(self, x):
        rows = int(x.shape[0])  # culprit
        offset = torch.arange(rows)[:, None] * 100.0
        return x + offset


def test_a_file_made_for_a_batch_of_one_is_right_there_and_said_to_be(tmp_path: Path) -> None:
    result = crossed(BatchOfOne(), (torch.randn(1, 4),), tmp_path, {"x": {0: "batch"}})
    assert errors(result) == ["NUM002"]
    assert "it is right at 1" in result.diagnoses[0].message
    assert marked(result)


def test_another_models_file_is_refused(tmp_path: Path) -> None:
    path = stock(nn.Linear(4, 4), (torch.randn(2, 4),), tmp_path / "a.onnx")
    assert errors(verdict(nn.Linear(4, 4), (torch.randn(2, 4),), path)) == ["NUM030"]


def test_a_file_with_other_outputs_is_refused(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, input):
            return input + 1, input * 2

    path = stock(nn.Softplus(), (torch.randn(2, 4),), tmp_path / "a.onnx")
    assert errors(verdict(Two(), (torch.randn(2, 4),), path)) == ["NUM013"]


def test_a_file_that_ends_at_a_size_of_its_own_is_tried_beyond_it(tmp_path: Path) -> None:
    example = (torch.randn(2, 6, 3),)
    result = verdict(Twice(), example, stock(FirstTwenty(), example, tmp_path / "a.onnx", LENGTH))
    assert errors(result) == ["NUM002"]
    assert min(t.sizes["length"] for t in result.trials if t.outcome == "differ") == 21
    assert max(t.sizes["length"] for t in result.trials if t.outcome == "agree") == 20


def test_a_file_that_counts_positions_by_itself_is_caught(tmp_path: Path) -> None:
    one, two = Placed(True), Placed(False)
    two.load_state_dict(one.state_dict())
    example = (torch.randn(2, 5, 4), torch.arange(5).expand(2, 5).clone())
    result = verdict(one, example, stock(two, example, tmp_path / "a.onnx"))
    wrong = {t.values for t in result.trials if t.outcome == "differ"}
    assert {"later-positions", "ragged-positions", "rows 16"} <= wrong
    assert not wrong & {"example", "random", "negative", "zeros"}  # at plain positions the file is right


class Rules(nn.Module):
    """Numbers that are compared as they come in, beside a layer whose results are rounded."""

    def __init__(self, wrong: str = ""):
        super().__init__()
        self.layer, self.wrong = nn.Linear(4, 3), wrong

    def forward(self, age, x):
        grown = age > 18 if self.wrong == "threshold" else age >= 18
        group = torch.bucketize(age, torch.tensor([18.0, 35.0, 65.0]), right=self.wrong == "buckets")
        rounded = torch.floor(age + 0.5) if self.wrong == "rounding" else torch.round(age)
        fee = torch.where(age > 65 if self.wrong == "fee" else age >= 65, age * 3.003, age * 3)
        return self.layer(x).softmax(-1), grown, group, rounded, fee


@pytest.mark.parametrize("wrong", ["threshold", "buckets", "rounding", "fee"])
def test_what_comes_in_is_not_rounded_so_that_which_side_of_a_number_it_is_on_counts(wrong: str, tmp_path: Path) -> None:
    right, twin = Rules(), Rules(wrong)
    twin.load_state_dict(right.state_dict())
    example = (torch.tensor([20.0, 41.0, 70.0]), torch.randn(3, 4))
    assert "NUM001" in errors(verdict(right, example, stock(twin, example, tmp_path / "twin.onnx")))
    assert not errors(verdict(right, example, stock(right, example, tmp_path / "right.onnx")))


class Cell(nn.Module):
    """A number of a table by its row and its column, counted from the end where they are negative."""

    def __init__(self, flat: bool = False):
        super().__init__()
        self.flat, self.table = flat, nn.Parameter(torch.randn(5, 7))

    def forward(self, i, j):
        return self.table.reshape(-1)[i * 7 + j] if self.flat else self.table[i, j]


def test_rows_and_columns_that_are_counted_from_the_end_are_tried(tmp_path: Path) -> None:
    model, flat = Cell(), Cell(flat=True)
    flat.load_state_dict(model.state_dict())
    example = (torch.randint(0, 5, (4,)), torch.randint(0, 7, (4,)))
    assert errors(verdict(model, example, stock(flat, example, tmp_path / "flat.onnx"))) == ["NUM001"]
    assert torchferry.export(model, example, tmp_path / "m.onnx").ok
