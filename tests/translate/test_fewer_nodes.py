"""Passes that leave fewer nodes: the same numbers, and only where they are the same for every size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

from torchferry.edits.translate import NoWholeSlices, TranslateEdit, WholeAttention, WholeNorms, WholeProducts, WholeRotations

sdpa = torch.nn.functional.scaled_dot_product_attention


def operators(function: Callable[..., Any], args: tuple[Any, ...], place: Path, *edits: TranslateEdit, **more: Any) -> list[str]:
    """Return the operators of the translated function, after it gave what eager gives."""
    made = agree(function, args, place, edits=edits, **more)
    return [node.op_type for node in made.model.graph]


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_a_slice_that_takes_everything_goes(tmp_path: Path) -> None:
    found = operators(lambda x: x[:, :, None] + 1, (random(2, 3),), tmp_path, NoWholeSlices())
    assert "Slice" not in found


def test_a_slice_that_takes_less_stays(tmp_path: Path) -> None:
    found = operators(lambda x: x[:, 1:] + 1, (random(2, 3),), tmp_path, NoWholeSlices())
    assert "Slice" in found


def test_rows_that_are_flattened_and_put_back_need_no_reshape(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 6)

    def product(x: torch.Tensor) -> torch.Tensor:
        flat = torch.addmm(layer.bias, x.view(-1, 4), layer.weight.t().contiguous())
        return flat.view(*x.shape[:-1], 6)

    assert {"Reshape", "Gemm"}.isdisjoint(operators(product, (random(2, 3, 4),), tmp_path, WholeProducts()))


def test_rows_that_are_put_back_elsewhere_keep_their_reshape(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 6)

    def product(x: torch.Tensor) -> torch.Tensor:
        flat = torch.addmm(layer.bias, x.view(-1, 4), layer.weight.t().contiguous())
        return flat.view(x.shape[1], x.shape[0], 6)

    assert "Gemm" in operators(product, (random(2, 3, 4),), tmp_path, WholeProducts())


def grown(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, past_key: torch.Tensor, past_value: torch.Tensor) -> Any:
    """Attention over a cache that grows."""
    key, value = torch.cat([past_key, key], -2), torch.cat([past_value, value], -2)
    return sdpa(query, key, value, attn_mask=None), key, value


def grouped(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, past_key: torch.Tensor, past_value: torch.Tensor) -> Any:
    """Likewise, with two query heads for each head of keys."""
    key, value = torch.cat([past_key, key], -2), torch.cat([past_value, value], -2)
    wide = [t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(t.shape[0], -1, *t.shape[2:]) for t in (key, value)]
    return sdpa(query, *wide), key, value


@pytest.mark.parametrize(("function", "heads"), [(grown, 4), (grouped, 2)])
def test_a_growing_cache_goes_into_the_attention(function: Callable[..., Any], heads: int, tmp_path: Path) -> None:
    args = (random(2, 4, 3, 8), random(2, heads, 3, 8), random(2, heads, 3, 8), random(2, heads, 5, 8), random(2, heads, 5, 8))
    assert operators(function, args, tmp_path, NoWholeSlices(), WholeAttention()) == ["Attention"]


@pytest.mark.parametrize("opset", [23, 24])
def test_a_newer_opset_takes_it_as_it_is(opset: int, tmp_path: Path) -> None:
    args = tuple(random(2, 4, 3, 8) for _ in range(5))
    assert operators(grown, args, tmp_path, WholeAttention(), opset=opset) == ["Attention"]


def masked(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Attention over heads that lie side by side."""
    apart = [t.view(*t.shape[:2], 4, 8).transpose(1, 2) for t in (query, key, value)]
    return sdpa(*apart, attn_mask=mask, scale=0.3).transpose(1, 2).reshape(query.shape)


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_a_mask_and_a_row_that_sees_nothing_mean_the_same(kind: torch.dtype, tmp_path: Path) -> None:
    mask = torch.ones(2, 1, 3, 5, dtype=torch.bool).tril(1)
    mask[1, :, 0] = False
    if kind is torch.float32:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    found = operators(masked, (random(2, 3, 32), random(2, 5, 32), random(2, 5, 32), mask), tmp_path, WholeAttention())
    assert "Attention" in found
    assert {"Softmax", "MatMul", "Transpose"}.isdisjoint(found)


def test_weights_that_are_wanted_themselves_are_still_given(tmp_path: Path) -> None:
    def both(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        root = 8**-0.25
        weights = torch.softmax((query * root) @ (key.transpose(-1, -2) * root), -1)
        return weights @ value, weights

    found = operators(both, (random(2, 4, 3, 8), random(2, 4, 5, 8), random(2, 4, 5, 8)), tmp_path, WholeAttention())
    assert "Softmax" in found


def test_a_cache_that_others_read_too_stays_outside(tmp_path: Path) -> None:
    def twice(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        key = torch.cat([past, key], -2)
        return sdpa(query, key, torch.cat([past, value], -2)) * key.amax()

    found = operators(twice, tuple(random(2, 4, 3, 8) for _ in range(4)), tmp_path, WholeAttention())
    assert found.count("Concat") == 2
    assert "Attention" in found


def test_another_precision_is_left_as_it_is(tmp_path: Path) -> None:
    args = tuple(random(2, 4, 3, 8).double() for _ in range(3))
    assert "Softmax" in operators(sdpa, args, tmp_path, WholeAttention())


WEIGHT, WEIGHTS = random(8), random(3, 8)


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def test_a_norm_that_is_written_out_becomes_one_node(tmp_path: Path) -> None:
    assert operators(lambda x: normed(x, WEIGHT), (random(2, 3, 8),), tmp_path, WholeNorms()) == ["RMSNormalization"]
    assert operators(lambda x: normed(x, 1 + WEIGHT), (random(2, 3, 8),), tmp_path, WholeNorms())[-1] == "RMSNormalization"


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * WEIGHT,
        lambda x: x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True).abs() + 1e-6) * WEIGHT,
        lambda x: x.sin() * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * WEIGHT,
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * WEIGHTS,
    ],
    ids=["other-axis", "other-power", "other-value", "a-weight-for-each-token"],
)
def test_what_only_looks_like_a_norm_stays(other: Callable[..., Any], tmp_path: Path) -> None:
    assert "RMSNormalization" not in operators(other, (random(2, 3, 8),), tmp_path, WholeNorms())


def rotated(x: torch.Tensor, places: torch.Tensor, halves: int = 2, sign: float = -1.0) -> torch.Tensor:
    angles = torch.cat([places[..., None] * torch.arange(1.0, 1 + 8 // halves)] * halves, -1)
    cosine, sine = (angles.cos() * 0.9)[:, None], (angles.sin() * 0.9)[:, None]
    return x * cosine + torch.cat([sign * x[..., 4:] if sign != -1 else -x[..., 4:], x[..., :4]], -1) * sine


def test_a_rotation_that_is_written_out_becomes_one_node(tmp_path: Path) -> None:
    found = operators(rotated, (random(2, 3, 5, 8), random(2, 5)), tmp_path, WholeRotations())
    assert "RotaryEmbedding" in found
    assert {"Neg", "Add"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("other", "places"),
    [
        (lambda x, places: rotated(x, places, halves=4), random(2, 5)),
        (lambda x, places: rotated(x, places, sign=1.0), random(2, 5)),
        (rotated, random(1, 5)),
    ],
    ids=["halves-of-other-angles", "no-rotation", "one-row-for-all"],
)
def test_what_only_looks_like_a_rotation_stays(other: Callable[..., Any], places: torch.Tensor, tmp_path: Path) -> None:
    assert "RotaryEmbedding" not in operators(other, (random(2, 3, 5, 8), places), tmp_path, WholeRotations())
