"""The opposite danger: correct files, ill-conditioned ones, ties and padding raise no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from crossing import crossed, errors, stock, verdict
from torch import nn

BATCH = {"input": {0: "batch"}}
MODELS = {
    "a perceptron": (nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)), torch.randn(2, 5)),
    "a small net": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2)), torch.randn(2, 2, 8, 8)),
    "an embedding": (nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 4)), torch.tensor([[1, 2, 9], [0, 3, 4]])),
    "a softmax": (nn.Softmax(-1), torch.randn(2, 5)),
    "a sigmoid": (nn.Sigmoid(), torch.randn(2, 5)),
    "a group norm": (nn.GroupNorm(2, 4), torch.randn(2, 4, 3, 3)),
    "a wide sum": (nn.Linear(4096, 2), torch.randn(2, 4096)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_right_file_passes(name: str, tmp_path: Path) -> None:
    model, example = MODELS[name]
    result = crossed(model.eval(), (example,), tmp_path, BATCH)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert len(result.trials) > 20


class Distances(nn.Module):
    def forward(self, a, b):
        return torch.cdist(a, b)


def test_an_ill_conditioned_model_is_not_called_wrong(tmp_path: Path) -> None:
    example = tuple(torch.randn(30, 6) * 0.01 + 100 for _ in range(2))
    result = crossed(Distances(), example, tmp_path)
    assert not errors(result), [(d.code, d.message) for d in result.diagnoses]
    assert "ill-conditioned" in {t.outcome for t in result.trials}


class Best(nn.Module):
    def forward(self, x):
        return x.topk(3)


def test_the_order_of_equal_keys_is_a_note(tmp_path: Path) -> None:
    result = crossed(Best(), (torch.randn(2, 9),), tmp_path)
    assert not errors(result), [(d.code, d.message) for d in result.diagnoses]


class Filled(nn.Module):
    def __init__(self, fill):
        super().__init__()
        self.fill = fill
        self.lin = nn.Linear(3, 3)

    def forward(self, x, attention_mask):
        return torch.where(attention_mask[..., None] > 0, self.lin(x), torch.full_like(x, self.fill))


class Pooled(Filled):
    def forward(self, x, attention_mask):
        return super().forward(x, attention_mask).mean(1)


def test_a_pooled_output_that_differs_by_padding_is_wrong(tmp_path: Path) -> None:
    one, two = Pooled(0.0), Pooled(1.0)
    two.load_state_dict(one.state_dict())
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = verdict(one, example, stock(two, example, tmp_path / "m.onnx"))
    assert errors(result)


@pytest.mark.parametrize("fills", [(1.0, 0.0), (0.0, 1.0)], ids=["ones", "zeros"])
def test_what_a_model_puts_where_the_mask_is_off_is_no_garbage(fills: tuple[float, float], tmp_path: Path) -> None:
    one, two = Filled(fills[0]), Filled(fills[1])
    two.load_state_dict(one.state_dict())
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    assert errors(verdict(one, example, stock(two, example, tmp_path / "m.onnx")))


class Attending(nn.Module):
    def __init__(self, ghost: float):
        super().__init__()
        self.ghost = ghost

    def forward(self, x, context, context_mask):
        kept = context * context_mask[..., None]
        lonely = (context_mask.sum(1) == 0)[:, None, None]
        return x + kept.sum(1, keepdim=True) + torch.where(lonely, self.ghost, 0.0)


@pytest.mark.parametrize("length", [3, 5])
def test_a_mask_over_what_is_attended_to_excuses_nothing_of_what_attends(length: int, tmp_path: Path) -> None:
    example = (torch.randn(2, length, 3), torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = verdict(Attending(0.0), example, stock(Attending(1.0), example, tmp_path / "m.onnx"))
    assert {t.values for t in result.trials if t.outcome == "differ"} == {"empty-row", "nothing-valid"}
    assert crossed(Attending(0.0), example, tmp_path).ok


class OfNothing(nn.Module):
    """A sum over real tokens; a row without any is something of its own."""

    def __init__(self, position: int, weight: float):
        super().__init__()
        self.position, self.weight = position, weight

    def forward(self, x, attention_mask):
        total = (x * attention_mask[..., None]).sum(1)
        nothing = attention_mask.sum(1, keepdim=True) == 0
        return torch.where(nothing, self.weight * x[:, self.position] + 1 - self.weight, total)


def test_a_row_without_a_token_may_differ_where_eager_takes_what_lies_under_the_mask(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = verdict(OfNothing(0, 1.0), example, stock(OfNothing(1, 1.0), example, tmp_path / "m.onnx"))
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert {t.values for t in result.trials if t.outcome == "padding-only"} == {"empty-row", "nothing-valid"}


def test_a_row_without_a_token_may_not_differ_where_eager_gives_a_number_of_its_own(tmp_path: Path) -> None:
    example = (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.int64))
    result = verdict(OfNothing(0, 0.0), example, stock(OfNothing(0, 1.0), example, tmp_path / "m.onnx"))
    assert errors(result) == ["NUM001"]
    assert {t.values for t in result.trials if t.outcome == "differ"} == {"empty-row", "nothing-valid"}


class Phase(nn.Module):
    def forward(self, x):
        return x.cumsum(1).cos()


def test_a_long_sum_added_up_in_another_order_is_rounding_whatever_follows(tmp_path: Path) -> None:
    result = crossed(Phase(), (torch.randn(2, 2048),), tmp_path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert "ill-conditioned" in {t.outcome for t in result.trials}


class Picky(nn.Module):
    def forward(self, x):
        if (x < 0).any():
            raise ValueError("nothing negative")
        return x * 2


def test_what_the_model_refuses_is_no_evidence(tmp_path: Path) -> None:
    result = crossed(Picky(), (torch.rand(2, 4),), tmp_path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert "eager-refused" in {t.outcome for t in result.trials}


class Standardised(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


class Correlated(nn.Module):
    def forward(self, x, y):
        x, y = x - x.mean(-1, keepdim=True), y - y.mean(-1, keepdim=True)
        return (x * y).sum(-1) / (x.square().sum(-1) * y.square().sum(-1)).sqrt()


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x).std(1)


def drawn(*shape: int) -> torch.Tensor:
    """Return the same numbers in every run: what is left of nothing by rounding hangs on them."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


UNDEFINED = {
    "rows of one number, standardised": (Standardised(), (drawn(3, 17),)),
    "rows of one number, correlated": (Correlated(), (drawn(3, 17), drawn(3, 17).flip(1))),
    "the spread of absurd numbers": (Spread(), (drawn(3, 5, 3),)),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_nothing_divided_by_nothing_is_no_evidence(name: str, tmp_path: Path) -> None:
    model, example = UNDEFINED[name]
    result = crossed(model.eval(), example, tmp_path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]


class Inpainted(nn.Module):
    """Its mask says where numbers are to be made up, and those are the answer; nothing here looks at other tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.guess = nn.Linear(3, 3)

    def forward(self, x, mask):
        return torch.where(mask[..., None] != 0, x, self.guess(x))


def test_what_lies_under_a_mask_is_garbage_only_where_attention_makes_it_so(tmp_path: Path) -> None:
    model, other, args = Inpainted(), Inpainted(), (torch.randn(2, 6, 3), torch.ones(2, 6, dtype=torch.long))
    assert verdict(model, args, stock(model, args, tmp_path / "same.onnx")).ok
    assert not verdict(model, args, stock(other, args, tmp_path / "other.onnx")).ok
