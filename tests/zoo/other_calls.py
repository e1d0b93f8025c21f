"""Calls that an example did not show, and whether a file gives there what the eager model gives: nothing of ours is trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

TEXTS = ("input_ids", "attention_mask", "decoder_input_ids", "bbox")
RTOL, ATOL = 1e-3, 1e-4
Inputs = Mapping[str, Any]


def others(example: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield the example with one more row, longer, with the padding on the other side, and as taller and wider pictures."""
    yield "a row more", {k: _mapped(v, lambda t: torch.cat([t, t[:1]]) if t.dim() else t) for k, v in example.items()}
    if any(name in example for name in TEXTS):
        yield "longer", {k: _longer(k, v) if k in TEXTS else v for k, v in example.items()}
    if "attention_mask" in example:
        yield "padded on the left", {k: v.flip(1) if k == "attention_mask" else v for k, v in example.items()}
    if any(_is_picture(v) for v in _tensors(example)):
        for name, scale in (("taller", (2, 1)), ("wider", (1, 2)), ("larger by a half", (1.5, 1.5))):
            yield name, {k: _mapped(v, lambda t, by=scale: _scaled(t, by)) for k, v in example.items()}


def difference(want: Any, got: np.ndarray[Any, Any], mask: torch.Tensor | None) -> str:
    """Return how an output differs from eager's; empty if it does not, or only under the padding."""
    wanted = torch.as_tensor(want).detach().float().numpy()
    if wanted.shape != got.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    if mask is not None and wanted.shape[:2] == tuple(mask.shape):
        valid = mask.bool().numpy()
        wanted, got = wanted[valid], got[valid]
    elif mask is not None and wanted.ndim == 4 and wanted.shape[0] == mask.shape[0] and wanted.shape[2] == mask.shape[1]:
        valid = mask.bool().numpy()  # a cache: its tokens are on the third axis
        wanted, got = wanted.swapaxes(1, 2)[valid], got.swapaxes(1, 2)[valid]
    close = np.isclose(got.astype(wanted.dtype), wanted, rtol=RTOL, atol=ATOL, equal_nan=True)
    return "" if close.all() else f"off by {np.nanmax(np.abs(wanted - got)):.3g}"


def eager(model: torch.nn.Module, inputs: Inputs) -> Any:
    """Return what the model gives, itself and the inputs left as they were."""
    with torch.no_grad():
        return copy.deepcopy(model)(**copy.deepcopy(dict(inputs)))


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a value, nested or not, with its tensors changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(v, change) for v in value)
    if hasattr(value, "layers"):  # a cache of transformers
        cache = copy.deepcopy(value)
        for layer in cache.layers:
            layer.keys, layer.values = change(layer.keys), change(layer.values)
        return cache
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for part in value.values():
        _mapped(part, lambda t: found.append(t) or t)  # type: ignore[func-returns-value]
    return found


def _longer(name: str, value: torch.Tensor) -> torch.Tensor:
    """Return a text with its last token five times more; those are no padding."""
    more = torch.ones_like(value[:, -1:]) if name == "attention_mask" else value[:, -1:]
    return torch.cat([value, *[more] * 5], 1)


def _is_picture(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dim() >= 3 and tensor.shape[-1] >= 16 and tensor.shape[-2] >= 16


def _scaled(tensor: torch.Tensor, by: tuple[float, float]) -> torch.Tensor:
    if not _is_picture(tensor):
        return tensor
    rows = torch.arange(int(tensor.shape[-2] * by[0])) % tensor.shape[-2]
    columns = torch.arange(int(tensor.shape[-1] * by[1])) % tensor.shape[-1]
    return tensor[..., rows, :][..., columns]
