"""Other calls than the example: the same inputs at other sizes and with other values, plausible for what they are.

`VALUES` names the ways to fill them, each with the roles of the inputs that it acts on. The inputs that a way does not
act on are filled as by "random". Everything follows from the seed, and no global generator is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from torchferry.inputs import sizes as size_text
from torchferry.inputs.roles import Part, Role
from torchferry.records import Size

Fill = Callable[[torch.Tensor, Part, torch.Generator], torch.Tensor]  # a plausible tensor -> the one to use
FLOATS: frozenset[Role] = frozenset({"float", "cache"})
INTS: frozenset[Role] = frozenset({"ids", "int", "types"})
MASKS: frozenset[Role] = frozenset({"mask"})
ANY: frozenset[Role] = frozenset({"float", "cache", "ids", "mask", "types", "lengths", "positions", "int", "bool", "number"})


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is needed to make another call."""

    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]
    shapes: tuple[tuple[Size, ...], ...]
    parts: tuple[Part, ...]
    sizes: Mapping[str, int]  # what each dim is in the example

    def vary(self, sizes: Mapping[str, int] | None = None, values: str = "random", seed: int = 0) -> tuple[torch.Tensor, ...]:
        """Return the tensors of another call; ValueError where no such call can be made."""
        chosen = self._sizes(sizes or {})
        if values not in VALUES:
            raise ValueError(f"no way to fill inputs is called `{values}`; there are {', '.join(VALUES)}")
        roles, fill = VALUES[values]
        if not any(p.role in roles for p in self.parts):
            raise ValueError(f"`{values}` has no input to act on")
        shapes = [tuple(size_text.value(s, chosen) for s in shape) for shape in self.shapes]
        if any(n < 0 for shape in shapes for n in shape):
            raise ValueError(f"a size would be negative at {chosen}")
        made = []
        for i, (part, example) in enumerate(zip(self.parts, self.tensors, strict=True)):
            generator = torch.Generator().manual_seed((seed * 1000003 + i) % 2**63)
            tensor = self._plausible(i, shapes, values, generator)
            if part.role in roles:  # integers keep their width, so that a way to fill them can stay within it
                tensor = fill(tensor if part.role in FLOATS else tensor.to(example.dtype), part, generator)
            tensor = tensor.sort(dim=-1).values if part.searched and tensor.dim() else tensor
            made.append(tensor.to(example.dtype).to(example.device))
        return tuple(made)

    def _sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        unknown = sorted(set(sizes) - set(self.sizes))
        if unknown:
            raise ValueError(f"no dim is called `{unknown[0]}`")
        return {**self.sizes, **sizes}

    def _plausible(self, i: int, shapes: Sequence[tuple[int, ...]], values: str, generator: torch.Generator) -> torch.Tensor:
        example, part, shape = self.tensors[i], self.parts[i], shapes[i]
        limit = shapes[part.below[0]][part.below[1]] if part.below is not None else None
        if values == "example":
            made = example.clone() if tuple(example.shape) == shape else resized(example, shape, part)
            return made if limit is None else made.clamp(max=limit if part.role == "lengths" else max(limit - 1, 0))
        return random_like(example, shape, part, generator, limit)


def resized(tensor: torch.Tensor, shape: tuple[int, ...], part: Part) -> torch.Tensor:
    """Return the tensor at another size: cut or repeated; stretched where the order of values carries meaning."""
    if part.role == "positions":
        return _positions(tensor, shape)
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
    example: torch.Tensor, shape: tuple[int, ...], part: Part, generator: torch.Generator, limit: int | None = None
) -> torch.Tensor:
    """Return other values of the same kind as the example's."""
    match part.role:
        case "float" | "cache":
            return _floats(example, shape, generator)
        case "mask":
            return resized(example, shape, part)
        case "bool":
            return torch.rand(shape, generator=generator) < 0.5
        case "positions":
            return _positions(example, shape)
        case "lengths":
            return _lengths(shape, part, generator, part.high - 1 if limit is None else limit)
        case "number":
            return _number(example, part, generator)
    high = part.high if limit is None else min(part.high, limit)
    low = min(part.low, max(high - 1, 0))
    values = torch.randint(low, max(high, low + 1), shape, generator=generator)
    if part.rising or part.falling:
        values = values.sort(dim=-1, descending=part.falling).values
    return values


def _floats(example: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    known = example.detach().to(torch.float64)
    known = known[known.isfinite()]
    if not known.numel():
        return torch.randn(shape, generator=generator)
    low, high, mean = known.min().item(), known.max().item(), known.mean().item()
    if low >= 0 and high > low:  # probabilities, pixels, distances: negative ones may not be plausible
        return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    spread = known.std().item() if known.numel() > 1 else 0.0
    return mean + (spread or 1.0) * torch.randn(shape, generator=generator, dtype=torch.float64)


def _positions(example: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    if not shape:
        return example.clone()
    first = int(example.min()) if example.numel() else 0
    return (torch.arange(shape[-1]) + first).expand(shape).clone()


def _lengths(shape: tuple[int, ...], part: Part, generator: torch.Generator, longest: int) -> torch.Tensor:
    values = torch.randint(1, longest + 1, shape, generator=generator)
    if values.numel():
        values[0] = longest  # a batch is padded to its longest row
    if part.rising or part.falling:
        values = values.sort(descending=part.falling).values
    return values


def _number(example: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    if example.dtype == torch.bool:
        return torch.rand((), generator=generator) < 0.5
    if example.is_floating_point():
        return example.to(torch.float64) * (0.5 + torch.rand((), generator=generator, dtype=torch.float64))
    return torch.randint(part.low, part.high + 4, (), generator=generator)


# --- the ways to fill ----------------------------------------------------------------------------


def _as_is(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return tensor


def _times(factor: float) -> Fill:
    return lambda t, p, g: t * factor


def _later(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    """Return positions further on: the last that there are, or some steps on where no table ends them."""
    last = part.high - 1 - int(tensor.max()) if tensor.numel() else 0
    return tensor + (last if last > 0 else 3)


def _one_element(value: float) -> Fill:
    def fill(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
        if tensor.numel():
            flat = tensor.clone().reshape(-1)
            flat[int(torch.randint(0, flat.numel(), (), generator=generator))] = value
            return flat.reshape(tensor.shape)
        return tensor

    return fill


def _one_row(value: float) -> Fill:
    def fill(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
        if not tensor.dim() or not tensor.numel():
            return torch.full_like(tensor, value)
        rows = tensor.clone().reshape(-1, tensor.shape[-1])
        rows[int(torch.randint(0, rows.shape[0], (), generator=generator))] = value
        return rows.reshape(tensor.shape)

    return fill


def _constant_rows(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return tensor[..., :1].expand_as(tensor).clone() if tensor.dim() and tensor.numel() else tensor


def _ties(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 3, tensor.shape, generator=generator)


def _grid(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    """Return tenths, whose multiples are not exact, and eighths, of which some are halves of what is rounded."""
    steps = torch.tensor([0.1, 0.125], dtype=torch.float64)[torch.randint(0, 2, tensor.shape, generator=generator)]
    return torch.randint(-20, 21, tensor.shape, generator=generator) * steps


def _duplicates(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, int(tensor.reshape(-1)[0])) if tensor.numel() else tensor


def _largest(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, part.high - 1)


def _shuffled(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return tensor.reshape(-1)[torch.randperm(tensor.numel(), generator=generator)].reshape(tensor.shape)


def _negated(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return -tensor if part.role in INTS else -tensor.abs()


def _big(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    """Return odd integers that float32 cannot hold, where the dtype can."""
    if tensor.dtype == torch.int64:
        return tensor * 2**31 + 7
    return tensor * 2**24 + 7 if tensor.dtype == torch.int32 else tensor


def _padding(left: bool) -> Fill:
    """Return a way that leaves a random part of each row valid, the first row whole."""

    def fill(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
        valid = _valid(tensor, lambda rows, width: torch.randint(1, width + 1, (rows,), generator=generator))
        return valid.flip(-1) if left else valid

    return fill


def _valid(tensor: torch.Tensor, lengths: Callable[[int, int], torch.Tensor], first_whole: bool = True) -> torch.Tensor:
    if not tensor.dim() or not tensor.numel():
        return torch.ones_like(tensor)
    width = tensor.shape[-1]
    rows = tensor.numel() // width
    count = lengths(rows, width)
    if first_whole:
        count[0] = width
    return (torch.arange(width)[None] < count[:, None]).reshape(tensor.shape)


def _inverted(fill: Fill) -> Fill:
    """Return a way that keeps the example's sense of a mask: where most of it is 0 or False, 0 means valid."""

    def wrapped(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
        valid = fill(tensor, part, generator).to(torch.bool)
        mostly_off = tensor.numel() > 0 and float(tensor.to(torch.float64).mean()) < 0.5
        return ~valid if mostly_off else valid

    return wrapped


def _padded_ids(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    """Return ids of which each row ends in zeros: what most tokenizers pad with, and models make their masks of."""
    valid = _valid(tensor, lambda rows, width: torch.randint(1, width + 1, (rows,), generator=generator), first_whole=False)
    return torch.where(valid != 0, tensor, 0)


def _one_valid(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return _valid(tensor, lambda rows, width: torch.ones(rows, dtype=torch.int64), first_whole=False)


def _empty_row(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    def lengths(rows: int, width: int) -> torch.Tensor:
        count = torch.full((rows,), width)
        count[-1] = 0
        return count

    return _valid(tensor, lengths, first_whole=False)


def _random_mask(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    mask = torch.rand(tensor.shape, generator=generator) < 0.7
    if mask.dim() and mask.numel():
        mask[..., 0] = True
    return mask


def _whole(tensor: torch.Tensor, part: Part, generator: torch.Generator) -> torch.Tensor:
    return torch.ones_like(tensor)


VALUES: Mapping[str, tuple[frozenset[Role], Fill]] = {
    "example": (ANY, _as_is),
    "random": (ANY, _as_is),
    # numbers with a fraction
    "scaled": (FLOATS, _times(255.0)),
    "small": (FLOATS, _times(1e-3)),
    "large": (FLOATS, _times(1e3)),
    "large-negative": (FLOATS, lambda t, p, g: t.abs() * -1e3),
    "large-positive": (FLOATS, lambda t, p, g: t.abs() * 1e3),
    "tiny": (FLOATS, _times(1e-8)),
    "shifted": (FLOATS, lambda t, p, g: t + 100),
    "offset": (FLOATS, lambda t, p, g: t + 100),
    "positive": (FLOATS, lambda t, p, g: t.abs()),
    "negative": (FLOATS | {"int"}, _negated),
    "equal": (FLOATS, lambda t, p, g: torch.full_like(t, 0.25)),
    "constant": (FLOATS, lambda t, p, g: torch.full_like(t, 0.25)),
    "constant-rows": (FLOATS, _constant_rows),
    "zero-rows": (FLOATS, _one_row(0.0)),
    "ties": (FLOATS, _ties),
    "grid": (FLOATS, _grid),
    "negative-zeros": (FLOATS, lambda t, p, g: torch.full_like(t, -0.0)),
    "huge": (FLOATS, _times(1e30)),
    "denormal": (FLOATS, _times(1e-40)),
    "nan": (FLOATS, _one_element(float("nan"))),
    "inf": (FLOATS, _one_element(float("inf"))),
    "-inf": (FLOATS, _one_row(float("-inf"))),
    "zeros": (FLOATS | INTS, lambda t, p, g: torch.zeros_like(t)),
    # integers
    "ones": (INTS, lambda t, p, g: torch.ones_like(t)),
    "duplicates": (INTS, _duplicates),
    "largest": (INTS, _largest),
    "max-id": (INTS, _largest),
    "negatives": (frozenset({"int"}), _negated),
    "shuffled": (INTS, _shuffled),
    "big": (frozenset({"int"}), _big),
    "big-ids": (frozenset({"ids"}), _big),  # refused by an embedding, but ids may be hashed
    "negative-ids": (frozenset({"ids"}), _negated),
    "padded-ids": (frozenset({"ids"}), _padded_ids),
    # masks
    "all-ones": (MASKS, _inverted(_whole)),
    "right-padded": (MASKS, _inverted(_padding(left=False))),
    "left-padded": (MASKS, _inverted(_padding(left=True))),
    "one-valid": (MASKS, _inverted(_one_valid)),
    "empty-row": (MASKS, _inverted(_empty_row)),
    "random-mask": (MASKS, _inverted(_random_mask)),
    "all-true": (frozenset({"bool"}), lambda t, p, g: torch.ones_like(t)),
    "all-false": (frozenset({"bool"}), lambda t, p, g: torch.zeros_like(t)),
    # lengths
    "short-lengths": (frozenset({"lengths"}), lambda t, p, g: torch.ones_like(t)),
    "lengths-short": (frozenset({"lengths"}), lambda t, p, g: torch.ones_like(t)),
    # positions
    "later-positions": (frozenset({"positions"}), _later),
    "equal-lengths": (frozenset({"lengths"}), lambda t, p, g: torch.full_like(t, int(t.max()) if t.numel() else 1)),
}
