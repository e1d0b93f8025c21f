"""Door to transformers' `generate`: the loop that it ends in, and what its parts leave on a config.

Relies on GenerationMixin's `_sample`, which greedy search and sampling both end in, on its switches `_is_stateful` and
`_supports_cache_class`, and on `GenerationConfig._pad_token_tensor`, as transformers 4.57 and 5 have them; on
`GenerationConfig._original_object_hash`, by which releases before 5 tell whether a config was changed since it was loaded.
Should they move: where `_sample` has another name, transformers' own loop runs, slower and no less right; `generate` also takes a
loop of one's own as `custom_generate`, which is public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers
from transformers import GenerationConfig, GenerationMixin

from torchferry.foreign.moved import moved

__all__ = ["Generating", "as_loaded", "pad_token"]

_HASHED = int(transformers.__version__.partition(".")[0]) < 5


class Generating(GenerationMixin):
    """What `generate` needs of a model that is none of transformers' own, with the loop in a method of a public name."""

    _is_stateful = False
    _supports_cache_class = True

    def _sample(self, *args: Any, **kwargs: Any) -> Any:
        return self.continued(super()._sample, *args, **kwargs)

    def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> Any:
        """Return what forward is called with; the places in the cache, which releases before 5 add, are its length again."""
        given = super().prepare_inputs_for_generation(*args, **kwargs)
        given.pop("cache_position", None)
        return given

    def continued(self, plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the text continued, greedily or by sampling; `plain` is transformers' own loop with the same arguments."""
        return plain(*args, **kwargs)


def as_loaded(config: GenerationConfig) -> GenerationConfig:
    """Return a config that was read from a dict as one that `generate` takes for loaded, and not changed since."""
    if _HASHED:
        config._original_object_hash = hash(config)
    return config


def pad_token(config: GenerationConfig) -> Any:
    """Return the token that `generate` fills a row with which has come to its end, as a tensor."""
    try:
        return config._pad_token_tensor
    except AttributeError as error:
        raise moved("transformers", "the token that pads a row", error) from error
