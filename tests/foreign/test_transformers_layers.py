"""The kinds of layers of transformers' caches, as the door has them, in this release and in one without states."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from transformers import cache_utils

from torchferry.foreign import transformers_layers as door

KINDS = [name for name in door.__all__ if name != "states_missing"]


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The door of a release whose caches hold keys and values alone."""
    for name in KINDS:
        monkeypatch.delattr(cache_utils, name, raising=False)
    kept = dict(vars(door))
    importlib.reload(door)
    yield
    vars(door).update(kept)


@pytest.mark.skipif(bool(door.states_missing()), reason="this release of transformers has no caches with states")
def test_the_kinds_are_those_of_transformers() -> None:
    assert [getattr(door, name) for name in KINDS] == [getattr(cache_utils, name) for name in KINDS]


@pytest.mark.usefixtures("older")
def test_in_a_release_without_states_no_layer_is_of_their_kinds_and_the_release_that_has_them_is_named() -> None:
    layer = cache_utils.DynamicLayer()
    assert not any(isinstance(layer, getattr(door, name)) for name in KINDS)
    assert "transformers 5.20" in door.states_missing()
