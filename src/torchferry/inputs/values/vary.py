"""Other calls than the example: the same inputs at other sizes and with other values, plausible for what they are.

The ways to fill them have names (ways.py), some with a number (amounts.py). Everything follows from the seed, and no global
generator is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.values import masks, positions
from torchferry.inputs.values.draws import drawn
from torchferry.inputs.values.roles import FLOATS, InputRole
from torchferry.inputs.values.ways import VALUES, way
from torchferry.records import Size
from torchferry.records.kinds_of_values import SIMPLEST

Made = Callable[[Mapping[str, int], int], tuple[torch.Tensor, ...]]  # (sizes, seed) -> a call as the caller makes it


@dataclass(frozen=True, slots=True)
class CallPlan:
    """All that is needed to make another call."""

    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]
    shapes: tuple[tuple[Size, ...], ...]
    parts: tuple[InputRole, ...]
    sizes: Mapping[str, int]  # what each dim is in the example
    made: Made | None = None  # the caller's own way to make inputs: then there is no other

    def vary(self, sizes: Mapping[str, int] | None = None, values: str = "random", seed: int = 0) -> tuple[torch.Tensor, ...]:
        """Return the tensors of another call; ValueError where no such call can be made."""
        chosen = self._sizes(sizes or {})
        roles, fill = way(values)
        if not any(p.role in roles for p in self.parts):
            raise ValueError(f"`{values}` has no input to act on")
        if self.made is not None:
            if values not in SIMPLEST:
                raise ValueError("all values are made by the caller")
            return self.made(chosen, seed) if values == "random" or sizes else self.tensors
        shapes = [tuple(size_text.value(s, chosen) for s in shape) for shape in self.shapes]
        if any(n < 0 for shape in shapes for n in shape):
            raise ValueError(f"a size would be negative at {chosen}")
        made, refusals = [], []
        for i, (part, example) in enumerate(zip(self.parts, self.tensors, strict=True)):
            generator = torch.Generator().manual_seed((seed * 1000003 + i) % 2**63)
            tensor = self._plausible(i, shapes, values, seed=seed, generator=generator)
            if part.role in roles:  # integers keep their width, so that a way to fill them can stay within it
                tensor = tensor if part.role in FLOATS else tensor.to(example.dtype)
                try:
                    tensor = _filled(tensor, part, fill, generator)
                except ValueError as refusal:  # of this input's dtype; another one may have room
                    refusals.append(str(refusal))
            tensor = tensor.sort(dim=-1).values if part.searched and tensor.dim() else tensor
            made.append(tensor.to(example.dtype).to(example.device))
            if values not in VALUES and made[-1].is_floating_point() and not bool(made[-1].isfinite().all()):
                raise ValueError(f"`{values}` goes further than {example.dtype} does")
        if refusals and len(refusals) == sum(p.role in roles for p in self.parts):
            raise ValueError(refusals[0])
        return tuple(made)

    def _sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        unknown = sorted(set(sizes) - set(self.sizes))
        if unknown:
            raise ValueError(f"no dim is called `{unknown[0]}`")
        return {**self.sizes, **sizes}

    def _plausible(
        self, i: int, shapes: Sequence[tuple[int, ...]], values: str, *, seed: int, generator: torch.Generator
    ) -> torch.Tensor:
        example, part, shape = self.tensors[i], self.parts[i], shapes[i]
        limit = shapes[part.below[0]][part.below[1]] if part.below is not None else None
        if values == "example":
            made = example.clone() if tuple(example.shape) == shape else resized(example, shape, part)
            return made if limit is None else made.clamp(max=limit if part.role == "lengths" else max(limit - 1, 0))
        free = random_like(example, shape, part, generator, limit)
        if not part.draw:
            return free
        together = torch.Generator().manual_seed(seed % 2**63)  # rows of several inputs that belong together stay so
        try:
            return drawn(part.draw, example, free, together if part.draw == "rows" else generator)
        except RuntimeError as error:  # a matrix that is not square at these sizes, or too large to be decomposed
            raise ValueError(f"no draw keeps `{part.draw}` at these sizes") from error


def _filled(tensor: torch.Tensor, part: InputRole, fill: Callable[..., torch.Tensor], generator: torch.Generator) -> torch.Tensor:
    """Return a tensor filled in some way; where the caller has said which values there are, within those."""
    made = fill(tensor, part, generator)
    if part.domain is None:
        return made
    low, high = part.domain
    inside = made if not made.is_floating_point() else torch.where(made.isfinite(), made, tensor.to(made.dtype))
    return inside.clamp(low, high)


def resized(tensor: torch.Tensor, shape: tuple[int, ...], part: InputRole) -> torch.Tensor:
    """Return the tensor at another size: cut or repeated; stretched where the order of values carries meaning."""
    if part.role == "positions":
        return positions.plain(tensor, shape)
    stretch = part.role == "mask" or part.rising or part.falling or part.searched
    for axis, size in enumerate(shape):
        old = tensor.shape[axis]
        if old == size:
            continue
        if old == 0:
            tensor = tensor.new_zeros((*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]))
            continue
        steps = torch.arange(size)
        index = steps * old // size if stretch and axis == tensor.dim() - 1 else steps % old
        tensor = tensor.index_select(axis, index.to(tensor.device))
    return tensor.clone()


def random_like(
    example: torch.Tensor, shape: tuple[int, ...], part: InputRole, generator: torch.Generator, limit: int | None = None
) -> torch.Tensor:
    """Return other values of the same kind as the example's."""
    if part.domain is not None:
        return _within(example, shape, part.domain, generator)
    match part.role:
        case "float" | "cache":
            return _floats(example, shape, generator)
        case "mask":
            return resized(example, shape, part) if part.named else masks.share_like(example, shape, generator)
        case "bool":
            return torch.rand(shape, generator=generator) < 0.5
        case "positions":
            return positions.plain(example, shape)
        case "lengths":
            return positions.lengths_like(shape, part, generator, part.high - 1 if limit is None else limit)
        case "number":
            return _number(example, part, generator)
    high = part.high if limit is None else min(part.high, limit)
    low = min(part.low, max(high - 1, 0))
    values = torch.randint(low, max(high, low + 1), shape, generator=generator)
    if part.rising or part.falling:
        values = values.sort(dim=-1, descending=part.falling).values
    return values


def _within(
    example: torch.Tensor, shape: tuple[int, ...], domain: tuple[float, float], generator: torch.Generator
) -> torch.Tensor:
    """Return values from all of what the caller says there is."""
    low, high = domain
    share = torch.rand(shape, generator=generator, dtype=torch.float64)
    if example.is_floating_point():
        return low + (high - low) * share
    return (low + ((high - low + 1) * share).floor()).clamp(max=high)


def _floats(example: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    known = example.detach().to(torch.float64)
    if (two := _hides(known)) is not None:
        return two[torch.randint(0, 2, shape, generator=generator)]
    known = known[known.isfinite()]
    if not known.numel():
        return torch.randn(shape, generator=generator)
    low, high, mean = known.min().item(), known.max().item(), known.mean().item()
    if low >= 0 and high > low:  # probabilities, pixels, distances: negative ones may not be plausible
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    spread = known.std().item() if known.numel() > 1 else 0.0
    return mean + (spread or 1.0) * torch.randn(shape, generator=generator, dtype=torch.float64)


def _hides(known: torch.Tensor) -> torch.Tensor | None:
    """Return the two values of a mask that is added to scores: 0, and one so low that nothing is left; None for other numbers."""
    if known.numel() < 4 or known.is_complex() or bool(known.isnan().any()):
        return None
    values = known.unique()
    return values if values.numel() == 2 and float(values[0]) <= -1e4 and float(values[1]) == 0 else None


def _number(example: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    if example.dtype == torch.bool:
        return torch.rand((), generator=generator) < 0.5
    if example.is_floating_point():
        return example.to(torch.float64) * (0.5 + torch.rand((), generator=generator, dtype=torch.float64))
    return torch.randint(part.low, part.high + 4, (), generator=generator)
