"""What differs in the number of a layer alone is told once."""

from __future__ import annotations

import pytest

from torchferry.records.signature import folded


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([f"past.{n}.key[0]" for n in range(12)], ("past.0..11.key[0]",)),
        (["ids", *(f"past.{n}.{k}" for n in range(3) for k in "kv")], ("ids", "past.0..2.k", "past.0..2.v")),
        (["past.0.key[0]", "past.1.key[0]"], ("past.0.key[0]", "past.1.key[0]")),
        (["past.0.key[0]", "past.2.key[0]", "past.3.key[0]"], ("past.0.key[0]", "past.2.key[0]", "past.3.key[0]")),
        ([f"past.{n}.key[1] = 4 (h.{n}.attn wants 4)" for n in range(4)], ("past.0..3.key[1] = 4 (h.0..3.attn wants 4)",)),
        ([f"past.{n}.key[1] = {n % 2} (why)" for n in range(4)], tuple(f"past.{n}.key[1] = {n % 2} (why)" for n in range(4))),
        (["x[0]", "x[1]"], ("x[0]", "x[1]")),
        ([], ()),
    ],
)  # fmt: skip
def test_equal_layers_are_told_once(texts: list[str], told: tuple[str, ...]) -> None:
    assert sorted(folded(texts)) == sorted(told)
