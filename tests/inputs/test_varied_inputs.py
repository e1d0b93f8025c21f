"""Other inputs are plausible, follow from the seed, and touch no global generator."""

from __future__ import annotations

import pytest
import torch

from torchferry.inputs import bind
from torchferry.inputs.values.roles import ROLES, InputRole
from torchferry.inputs.values.vary import VALUES
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
    if values == "weights":  # of which only a mask of floats has room
        with pytest.raises(ValueError, match="only a mask of floats"):
            made(values)
        return
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
    ids = VALUES["padded-ids"][1](torch.full((64, 6), 7), InputRole("ids", 1, 9), generator)
    assert {tuple(row.tolist()) for row in ids} == {(7,) * n + (0,) * (6 - n) for n in range(1, 7)}
    grid = VALUES["grid"][1](torch.zeros(200), InputRole("float"), generator)
    assert bool((grid.remainder(1) == 0.5).any() and (grid.remainder(0.5) == 0.125).any())


def test_ways_with_a_number_lie_where_they_say() -> None:
    features, rel = (made(f"near {n}", sequence_length=40)[name] for n, name in ((0.25, "features"), (7, "rel")))
    assert bool((features == 0.25).any() and (features < 0.25).any() and (features > 0.25).any())
    assert bool(((features - 0.25).abs() < 1e-6).sum() > (features == 0.25).sum())
    assert set(rel.tolist()) & {6, 7, 8}
    assert bool((made("above 0.3")["features"] > 0.3).all() and (made("below 0.3")["features"] < 0.3).all())
    assert bool((made("above 7")["rel"] > 7).all() and (made("below 7")["rel"] < 7).all())
    assert set(made("at 4")["rel"].tolist()) == {4}
    spread = made("spread 100", sequence_length=40)["features"]
    assert float(spread.min()) < 0
    assert 100 < float(spread.max()) <= 110


def test_rows_of_a_table_all_come_and_a_part_of_them_has_both_ends() -> None:
    assert sorted(made("rows 18")["input_ids"].flatten().tolist()) == list(range(18))
    some = made("rows 40")["input_ids"].flatten().tolist()
    assert {0, 39} <= set(some)
    assert len(set(some)) == 18
    assert sorted(made("rows 40 18")["input_ids"].flatten().tolist()) == list(range(18, 36))
    assert sorted(made("rows 18 0 1")["input_ids"].flatten().tolist()) == list(range(1, 19))
    assert sorted(made("rows-from-end 18")["input_ids"].flatten().tolist()) == list(range(-18, 0))


def test_one_column_alone_can_be_filled() -> None:
    plain, filled = made("random", seed=3)["features"], made("column-2 rows 12", seed=3)["features"]
    assert torch.equal(plain[..., [0, 1, 3]], filled[..., [0, 1, 3]])
    assert set(filled[..., 2].flatten().tolist()) == set(map(float, range(12)))


def test_what_a_dtype_cannot_hold_is_no_call() -> None:
    small = bind(Case(Job(lambda x: x + 1, (torch.tensor([1, 2], dtype=torch.uint8),)))).value
    with pytest.raises(ValueError, match="does not go so far"):
        small.vary({}, "rows 300", 0)
    assert {0, 255} <= set(small.vary({}, "whole-dtype", 0)[0].tolist())
    half = bind(Case(Job(lambda x: x + 1, (torch.tensor([1.0, 2.5]).half(),)))).value
    with pytest.raises(ValueError, match="goes further"):
        half.vary({}, "above 1e+06", 0)


def test_positions_need_not_be_one_plain_range() -> None:
    plain = made("random")["position_ids"]
    ragged, gapped, reset, twice = (made(f"{w}-positions")["position_ids"] for w in ("ragged", "gapped", "reset", "repeated"))
    assert len({tuple(row) for row in ragged.tolist()}) > 1
    assert int(ragged.min()) == 0
    assert bool((gapped.diff(dim=-1) >= 1).all() and (gapped.diff(dim=-1) > 1).any())
    assert reset[0].tolist() == [0, 1, 2, 0, 1, 2]
    assert twice[0].tolist() == [0, 0, 1, 1, 2, 2]
    assert plain[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_lengths_may_be_zero_and_masks_may_number_documents() -> None:
    assert 0 in made("some-empty")["lengths"].tolist()
    assert set(made("all-empty")["lengths"].tolist()) == {0}
    packed = made("segments", sequence_length=30)["attention_mask"]
    assert {1, 2, 3} <= set(packed.flatten().tolist())
    assert bool((packed[0] > 0).all())


def test_zeros_and_ones_that_are_no_mask_by_name_are_drawn_anew() -> None:
    bag = bind(Case(Job(lambda words: words.float().cumsum(-1), (torch.randint(0, 2, (4, 10)),)))).value
    assert bag.roles == {"words": "flags"}
    assert len({tuple(bag.vary({}, "random", s)[0].flatten().tolist()) for s in range(4)}) == 4


def test_an_index_goes_over_all_of_what_it_points_into() -> None:
    table = torch.randn(50)
    found = bind(Case(Job(lambda x, t: x * table[t], (torch.randn(3), torch.tensor([3, 1, 2]))))).value
    assert max(int(found.vary({}, "random", s)[1].max()) for s in range(20)) > 40
