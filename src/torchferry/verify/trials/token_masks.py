"""Which tokens of a made-up call are padding, as far as names, roles and the example tell: what to try, never what to believe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torchferry.records import Signature, TensorSpec
from torchferry.verify.arrays import Array

# words in a mask's name that do not say whose tokens it is about
GENERAL = frozenset(
    {"mask", "masks", "pad", "padding", "attention", "attn", "key", "token", "tokens", "input", "valid", "is", "bool"}
)


def padding(
    signature: Signature, feeds: Mapping[str, Array], examples: Mapping[str, Array], roles: Mapping[str, str]
) -> Array | None:
    """Return where tokens are real, as booleans of (batch, length), or None when no input is a token mask."""
    spec = token_mask(signature, roles)
    if spec is None:
        return None
    on = feeds[spec.name] != 0
    return ~on if marks_padding(spec.name, examples[spec.name]) else on


def marks_padding(name: str, example: Array) -> bool:
    """Return whether a mask is true at padding (as in torch.nn) rather than at tokens (as in transformers)."""
    if "pad" in name.lower() and "attention" not in name.lower():
        return bool((example == 0).mean() >= 0.5) if example.size else True
    return bool(example.dtype.kind == "b" and not example.any())


def token_mask(signature: Signature, roles: Mapping[str, str]) -> TensorSpec | None:
    """Return the input that says which tokens count, by the role that it was given when it was bound; or None."""
    return next((s for s in signature.inputs if len(s.shape) == 2 and roles.get(s.name) == "mask"), None)


def speaks_of(mask: str, name: str, names: Sequence[str]) -> bool:
    """Return whether a mask is about an input's tokens: `ctx_mask` is about `ctx` and not about `x`, `mask` about either."""
    stem = _words(mask) - GENERAL
    named = [n for n in names if n != mask and any(w.startswith(s) for s in stem for w in _words(n))]
    return not named or name in named


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower()))
