"""Other inputs are plausible, follow from the seed, and touch no global generator."""

from __future__ import annotations

import pytest
import torch

from torchferry.inputs import bind
from torchferry.inputs.roles import ROLES, Part
from torchferry.inputs.vary import VALUES
from torchferry.records import Bound, Case, Job


class Everything(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(40, 4)

    def forward(  # type: ignore[no-untyped-def]
        self, *, input_ids, attention_mask, token_type_ids, position_ids, features, lengths, keep, rel
    ):
        x = self.words(input_ids) * attention_mask[..., None] + token_type_ids[..., None] + position_ids[..., None]
        inside = (torch.arange(features.shape[1])[None] < lengths[:, None])[..., None]
        return (x + features) * inside * keep + rel.sum()


def everything() -> Bound:
    ids = torch.randint(0, 30, (3, 6))
    call = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "position_ids": torch.arange(6).expand(3, 6),
        "features": torch.randn(3, 6, 4),
        "lengths": torch.tensor([6, 4, 2]),
        "keep": torch.tensor([True, False, True, True]),
        "rel": torch.tensor([-3, 5, 2]),
    }
    step = bind(Case(Job(Everything().eval(), (), call)))
    assert step.fault is None, step.fault
    return step.value


FOUND = everything()
NAMES = [s.name for s in FOUND.signature.inputs]


def made(values: str = "random", seed: int = 0, **sizes: int) -> dict[str, torch.Tensor]:
    return dict(zip(NAMES, FOUND.vary(sizes, values, seed), strict=True))


def test_each_input_has_a_role() -> None:
    roles = ["ids", "mask", "types", "positions", "float", "lengths", "bool", "int"]
    assert list(FOUND.roles.values()) == roles
    assert set(roles) <= set(ROLES)


@pytest.mark.parametrize("values", VALUES)
def test_every_way_of_filling_gives_the_sizes_and_dtypes_asked_for(values: str) -> None:
    if not VALUES[values][0] & set(FOUND.roles.values()):
        pytest.skip("no input to act on")
    call = made(values, batch_size=2, sequence_length=9)
    assert call["input_ids"].shape == call["attention_mask"].shape == (2, 9)
    for name, example in zip(NAMES, FOUND.args, strict=True):
        assert call[name].dtype == example.dtype


@pytest.mark.parametrize("seed", range(4))
def test_values_stay_plausible(seed: int) -> None:
    call = made(seed=seed, batch_size=4, sequence_length=11)
    assert 0 <= int(call["input_ids"].min()) <= int(call["input_ids"].max()) < 40
    assert set(call["attention_mask"].unique().tolist()) <= {0, 1}
    assert torch.equal(call["position_ids"], torch.arange(11).expand(4, 11))
    assert 1 <= int(call["lengths"].min()) <= int(call["lengths"].max()) == 11
    assert call["lengths"].tolist() == sorted(call["lengths"].tolist(), reverse=True)
    assert abs(float(call["features"].std()) - 1) < 0.5


def test_the_same_seed_gives_the_same_values_and_no_generator_moves() -> None:
    state = torch.get_rng_state()
    first, second, other = made(seed=3), made(seed=3), made(seed=4)
    assert all(torch.equal(first[n], second[n]) for n in NAMES)
    assert not torch.equal(first["features"], other["features"])
    assert torch.equal(torch.get_rng_state(), state)


def test_the_example_is_the_example_at_its_own_sizes() -> None:
    call = made("example")
    assert all(torch.equal(call[n], t) for n, t in zip(NAMES, FOUND.args, strict=True))


def test_paddings_are_what_they_say() -> None:
    right, left, one, empty = (
        made(v, sequence_length=8)["attention_mask"] for v in ("right-padded", "left-padded", "one-valid", "empty-row")
    )
    assert bool((right.diff(dim=-1) <= 0).all())
    assert bool((left.diff(dim=-1) >= 0).all())
    assert one.sum(-1).tolist() == [1, 1, 1]
    assert empty.sum(-1).tolist() == [8, 8, 0]


def test_a_mask_whose_ones_mean_hidden_keeps_its_sense() -> None:
    step = bind(
        Case(Job(lambda x, pad: x.masked_fill(pad[..., None], 0.0), (torch.randn(2, 5, 3), torch.zeros(2, 5, dtype=torch.bool))))
    )
    hidden = step.value.vary({}, "right-padded", 1)[1]
    assert not bool(hidden[0].any())
    assert bool((hidden.int().diff(dim=-1) >= 0).all())


@pytest.mark.parametrize(
    ("values", "sizes"),
    [("no-such-way", {}), ("random", {"no_such_dim": 3}), ("random", {"batch_size": -1})],
    ids=["way", "dim", "negative"],
)
def test_what_cannot_be_made_is_refused(values: str, sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"`|negative"):
        FOUND.vary(sizes, values, 0)


def test_a_way_without_an_input_to_act_on_is_refused() -> None:
    floats = bind(Case(Job(torch.nn.ReLU(), (torch.randn(2, 3),)))).value
    with pytest.raises(ValueError, match="has no input to act on"):
        floats.vary({}, "left-padded", 0)


def test_what_is_searched_by_halving_stays_sorted_and_other_rising_numbers_need_not() -> None:
    edges, rising = torch.tensor([-1.0, 0.0, 0.5, 2.0, 3.0]), torch.arange(4.0).expand(2, 4)
    step = bind(Case(Job(lambda x, edges: torch.bucketize(x, edges) + 1, (rising, edges))))
    calls = [step.value.vary({}, values, seed) for values in ("random", "negative", "ties", "large") for seed in range(3)]
    assert all(bool((edges.diff() >= 0).all()) for _, edges in calls)
    assert any(bool((x.diff() < 0).any()) for x, _ in calls)


def test_padded_ids_end_in_zeros_and_a_grid_has_exact_halves() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = VALUES["padded-ids"][1](torch.full((64, 6), 7), Part("ids", 1, 9), generator)
    assert {tuple(row.tolist()) for row in ids} == {(7,) * n + (0,) * (6 - n) for n in range(1, 7)}
    grid = VALUES["grid"][1](torch.zeros(200), Part("float"), generator)
    assert bool((grid.remainder(1) == 0.5).any() and (grid.remainder(0.5) == 0.125).any())
