"""Containers come apart into named leaves and are put together again as they were."""

from __future__ import annotations

import collections
import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch

from torchferry.inputs.binding import trees


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclass
class Batch:
    tokens: torch.Tensor
    mask: torch.Tensor | None = None
    total: int = field(default=0)


@dataclass(frozen=True)
class Derived:
    x: torch.Tensor
    doubled: Any = field(init=False, default=None)


class Encoding(collections.UserDict):  # type: ignore[type-arg]
    def __init__(self, data: dict[str, Any], kind: str = "plain") -> None:
        super().__init__(data)
        self.kind = kind


class Plain:
    def __init__(self, x: torch.Tensor) -> None:
        self.x, self.note = x, "kept"


@dataclass
class Layer:
    keys: torch.Tensor | None
    values: torch.Tensor | None
    cumulative_length: int = 0


class Cache:
    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers

    def get_seq_length(self) -> int:
        return 0


def one(k: float) -> torch.Tensor:
    return torch.full((2, 3), k)


def cache(layers: int = 2, length: int = 3) -> Cache:
    return Cache([Layer(torch.rand(1, 2, length, 4), torch.rand(1, 2, length, 4), length) for _ in range(layers)])


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (one(1), ["a"]),
        ([one(1), {"k": one(2)}], ["a.0", "a.1.k"]),
        ((one(1), (one(2), None)), ["a.0", "a.1.0", "a.1.1"]),
        (Pair(one(1), one(2)), ["a.left", "a.right"]),
        (Batch(one(1), one(2), 7), ["a.tokens", "a.mask", "a.total"]),
        (Encoding({"ids": one(1)}, "kind"), ["a.ids"]),
        (collections.OrderedDict(z=one(1), b=one(2)), ["a.z", "a.b"]),
        (collections.defaultdict(list, {"k": one(1)}), ["a.k"]),
        (Plain(one(1)), ["a.x", "a.note"]),
        ("text", ["a"]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_container_is_rebuilt_with_the_same_type_and_other_leaves(value: Any, names: list[str]) -> None:
    leaves, tree = trees.flatten(value, "a")
    assert [n for n, _ in leaves] == names == list(trees.leaf_names(tree))
    again = trees.rebuild(tree, [v + 10 if isinstance(v, torch.Tensor) else v for _, v in leaves])
    assert type(again) is type(value)
    changed, _ = trees.flatten(again, "a")
    for (_, old), (_, new) in zip(leaves, changed, strict=True):
        assert torch.equal(new, old + 10) if isinstance(old, torch.Tensor) else new == old


def test_attributes_beside_the_data_survive() -> None:
    encoding = Encoding({"ids": one(1)}, "special")
    leaves, tree = trees.flatten(encoding, "e")
    again = trees.rebuild(tree, [v for _, v in leaves])
    assert again.kind == "special"
    assert again is not encoding


def test_a_frozen_dataclass_with_fields_outside_init_is_rebuilt() -> None:
    leaves, tree = trees.flatten(Derived(one(1)), "d")
    assert torch.equal(trees.rebuild(tree, [v * 3 for _, v in leaves[:1]] + [None]).x, one(3))


def test_a_tree_is_not_copied_and_keeps_no_tensors_alive() -> None:
    _, tree = trees.flatten(cache(), "past_key_values")
    assert copy.deepcopy(tree) is tree


def test_a_cache_is_named_by_layer_and_its_counters_follow_the_tensors() -> None:
    leaves, tree = trees.flatten(cache(), "past_key_values")
    assert [n for n, _ in leaves] == [f"past_key_values.{i}.{w}" for i in (0, 1) for w in ("key", "value")]
    again = trees.rebuild(tree, [torch.rand(1, 2, 9, 4) for _ in leaves])
    assert [la.keys.shape[-2] for la in again.layers] == [9, 9]
    assert [la.cumulative_length for la in again.layers] == [9, 9]


def test_rebuilding_twice_gives_caches_that_do_not_share_layers() -> None:
    leaves, tree = trees.flatten(cache(), "past_key_values")
    values = [v for _, v in leaves]
    first, second = trees.rebuild(tree, values), trees.rebuild(tree, values)
    first.layers.append("more")
    first.layers[0].keys = None
    assert len(second.layers) == 2
    assert second.layers[0].keys is not None


def test_a_legacy_cache_is_named_like_a_cache() -> None:
    past = tuple((torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4)) for _ in range(2))
    leaves, tree = trees.flatten(past, "past_key_values")
    assert [n for n, _ in leaves][:2] == ["past_key_values.0.key", "past_key_values.0.value"]
    again = trees.rebuild(tree, [v for _, v in leaves])
    assert isinstance(again[0], tuple)
    assert len(again) == 2


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (one(1), ["output"]),
        ((one(1), one(2)), ["output", "output_1"]),
        ([one(1), [one(2), one(3)]], ["output", "output_1.0", "output_1.1"]),
        ({"logits": one(1), "aux": (one(2), None)}, ["logits", "aux.0"]),
        (Pair(one(1), one(2)), ["left", "right"]),
        (Batch(one(1), None, 3), ["tokens", "total"]),
        ({"logits": one(1), "past_key_values": cache(1)}, ["logits", "present.0.key", "present.0.value"]),
        ({"past_key_values": ((torch.rand(1, 1, 1, 1), torch.rand(1, 1, 1, 1)),)}, ["present.0.key", "present.0.value"]),
        ((one(1), 3, 2.5, True), ["output", "output_1", "output_2", "output_3"]),
        (Plain(one(1)), ["x", "note"]),
    ],
)
def test_outputs_are_named_by_their_keys_in_the_order_of_the_model(value: Any, names: list[str]) -> None:
    assert [n for n, _ in trees.outputs(value)] == names


def test_names_that_occur_twice_are_numbered() -> None:
    assert trees.unique(["a", "b", "a", "a"], taken=["b"]) == ["a", "b_1", "a_1", "a_2"]


def test_transformers_caches_are_known_by_their_shape() -> None:
    transformers = pytest.importorskip("transformers")
    past = transformers.DynamicCache()
    past.update(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), 0)
    pair = transformers.EncoderDecoderCache(past, copy.deepcopy(past))
    assert [n for n, _ in trees.flatten(past, "past_key_values")[0]] == ["past_key_values.0.key", "past_key_values.0.value"]
    leaves, tree = trees.flatten(pair, "past_key_values")
    assert [n for n, _ in leaves][1::2] == ["past_key_values.0.decoder.value", "past_key_values.0.encoder.value"]
    again = trees.rebuild(tree, [v for _, v in leaves])
    assert type(again) is type(pair)
    assert torch.equal(again.self_attention_cache.layers[0].keys, past.layers[0].keys)


def test_what_a_cache_keeps_for_itself_is_no_output() -> None:
    transformers = pytest.importorskip("transformers")
    past = transformers.DynamicCache()
    past.update(torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), 0)
    pair = transformers.EncoderDecoderCache(past, copy.deepcopy(past))
    pair.is_updated = {0: True}
    sides = [f"present.0.{side}.{what}" for side in ("decoder", "encoder") for what in ("key", "value")]
    assert [n for n, _ in trees.outputs({"logits": torch.rand(1), "past_key_values": pair})] == ["logits", *sides]


def test_a_layer_with_a_window_counts_by_the_layer_that_keeps_all_tokens() -> None:
    whole, window = (
        Layer(torch.rand(1, 1, 7, 2), torch.rand(1, 1, 7, 2), 7),
        Layer(torch.rand(1, 1, 3, 2), torch.rand(1, 1, 3, 2), 7),
    )
    leaves, tree = trees.flatten(Cache([window, whole]), "past")
    longer = [torch.rand(1, 1, 9 if "1." in name else 3, 2) for name, _ in leaves]
    assert [la.cumulative_length for la in trees.rebuild(tree, longer).layers] == [9, 9]
