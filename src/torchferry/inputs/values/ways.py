"""The ways to fill inputs, by name, each with the roles of the inputs that it acts on; the others are filled as by "random"."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from torchferry.inputs.values import masks, positions
from torchferry.inputs.values.amounts import AMOUNTS
from torchferry.inputs.values.roles import ANY, FLOATS, INTS, MASKS, WHOLE, Fill, InputRole, Role

Way = tuple[frozenset[Role], Fill]


def way(values: str) -> Way:
    """Return what a name stands for, with its numbers and its column if it has any: `zeros`, `near 0.3`, `column-2 rows 12`.

    ValueError for no such way.
    """
    if values in VALUES:
        return VALUES[values]
    name, *numbers = values.split()
    if name.startswith("column-") and name.removeprefix("column-").isdigit() and numbers:
        roles, fill = way(" ".join(numbers))
        return roles, _in_column(int(name.removeprefix("column-")), fill)
    if name not in AMOUNTS or not numbers:
        raise ValueError(f"no way to fill inputs is called `{values}`; there are {', '.join([*VALUES, *AMOUNTS])}")
    roles, maker = AMOUNTS[name]
    return roles, maker(*map(float, numbers))


def _in_column(column: int, fill: Fill) -> Fill:
    """Return a way that acts on one place of the last axis alone: a table's column of codes beside one of prices."""

    def inner(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        if not tensor.dim() or tensor.shape[-1] <= column:
            raise ValueError(f"no input has a column {column}")
        made = tensor.clone()
        made[..., column] = fill(tensor[..., column], part, generator).to(made.dtype)
        return made

    return inner


def _as_is(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return tensor


def _times(factor: float) -> Fill:
    return lambda t, p, g: t * factor


def _one_element(value: float) -> Fill:
    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        if tensor.numel():
            flat = tensor.clone().reshape(-1)
            flat[int(torch.randint(0, flat.numel(), (), generator=generator))] = value
            return flat.reshape(tensor.shape)
        return tensor

    return fill


def _one_row(value: float) -> Fill:
    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        if not tensor.dim() or not tensor.numel():
            return torch.full_like(tensor, value)
        rows = tensor.clone().reshape(-1, tensor.shape[-1])
        rows[int(torch.randint(0, rows.shape[0], (), generator=generator))] = value
        return rows.reshape(tensor.shape)

    return fill


def _one_column(value: float) -> Fill:
    """Return a way that puts a value into one place of the last axis, in all rows: a sensor that is dead."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        made = tensor.clone()
        if tensor.dim() and tensor.shape[-1]:
            made[..., int(torch.randint(0, tensor.shape[-1], (), generator=generator))] = value
        return made

    return fill


def _some(value: float) -> Fill:
    """Return a way that puts a value into every third place, counted along the rows and not in step with them."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        width = tensor.shape[-1] if tensor.dim() else 1
        step = 3 if width % 3 else 4
        flat = tensor.clone().reshape(-1)
        flat[1::step] = value
        return flat.reshape(tensor.shape)

    return fill


def _constant_rows(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return tensor[..., :1].expand_as(tensor).clone() if tensor.dim() and tensor.numel() else tensor


def _ties(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 3, tensor.shape, generator=generator)


def _grid(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return tenths, whose multiples are not exact, and eighths, of which some are halves of what is rounded."""
    steps = torch.tensor([0.1, 0.125], dtype=torch.float64)[torch.randint(0, 2, tensor.shape, generator=generator)]
    return torch.randint(-20, 21, tensor.shape, generator=generator) * steps


def _duplicates(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, int(tensor.reshape(-1)[0])) if tensor.numel() else tensor


def _largest(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, part.high - 1)


def _shuffled(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return tensor.reshape(-1)[torch.randperm(tensor.numel(), generator=generator)].reshape(tensor.shape)


def _negated(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    return -tensor if part.role in INTS else -tensor.abs()


def _big(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return odd integers that float32 cannot hold, where the dtype can.

    They lie beyond 2**32, and are negative if cut to 32 bits: of two numbers between 2**31 and 2**32 some builds of onnxruntime
    take the wrong one for the smaller, whatever the file.
    """
    if tensor.dtype == torch.int64:
        return (4 * tensor.abs() + 5) * 2**31 + 7
    return tensor * 2**24 + 7 if tensor.dtype == torch.int32 else tensor


def _wide(low: int, high: int) -> Fill:
    """Return a way that draws from all whole numbers between two; ValueError where the dtype does not go so far."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        if tensor.is_floating_point() or tensor.dtype == torch.bool or torch.iinfo(tensor.dtype).max < high:
            raise ValueError("no whole numbers of that size")
        return torch.randint(low, high, tensor.shape, generator=generator, dtype=torch.int64).to(tensor.dtype)

    return fill


def _whole_dtype(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return numbers from all that a dtype of up to 32 bits has, both ends among them; less of a wider one."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise ValueError("no dtype of whole numbers")
    info = torch.iinfo(tensor.dtype)
    low, high = (
        (info.min, info.max) if info.bits <= 32 else (-(2**40), 2**40)
    )  # doubles add these exactly, and so does onnxruntime
    values = torch.randint(low, high, tensor.shape, generator=generator, dtype=torch.int64).reshape(-1)
    values[: min(2, values.numel())] = torch.tensor([high, low])[: min(2, values.numel())]
    return values.reshape(tensor.shape).to(tensor.dtype)


def _padded_ids(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
    """Return ids of which each row ends in zeros: what most tokenizers pad with, and models make their masks of."""
    length = lambda rows, width: torch.randint(1, width + 1, (rows,), generator=generator)  # noqa: E731
    return torch.where(masks.valid(tensor, length, first_whole=False) != 0, tensor, 0)


VALUES: Mapping[str, Way] = {
    "example": (ANY, _as_is),
    "random": (ANY, _as_is),
    # numbers with a fraction
    "scaled": (FLOATS, _times(255.0)),
    "small": (FLOATS, _times(1e-3)),
    "large": (FLOATS, _times(1e3)),
    "large-negative": (FLOATS, lambda t, p, g: t.abs() * -1e3),
    "large-positive": (FLOATS, lambda t, p, g: t.abs() * 1e3),
    "tiny": (FLOATS, _times(1e-8)),
    "offset": (FLOATS, lambda t, p, g: t + 100),
    "positive": (FLOATS, lambda t, p, g: t.abs()),
    "negative": (FLOATS | {"int"}, _negated),
    "constant": (FLOATS, lambda t, p, g: torch.full_like(t, 0.25)),
    "constant-rows": (FLOATS, _constant_rows),
    "zero-rows": (FLOATS, _one_row(0.0)),
    "some-zeros": (FLOATS, _some(0.0)),
    "ties": (FLOATS, _ties),
    "grid": (FLOATS, _grid),
    "halves": (FLOATS, lambda t, p, g: torch.randint(-6, 6, t.shape, generator=g) + 0.5),
    "negative-zeros": (FLOATS, lambda t, p, g: torch.full_like(t, -0.0)),
    "huge": (FLOATS, _times(1e30)),
    "denormal": (FLOATS, _times(1e-40)),
    "nan": (FLOATS, _one_element(float("nan"))),
    "inf": (FLOATS, _one_element(float("inf"))),
    "-inf": (FLOATS, _one_row(float("-inf"))),
    "some-nan": (FLOATS, _some(float("nan"))),
    "nan-row": (FLOATS, _one_row(float("nan"))),
    "nan-column": (FLOATS, _one_column(math.nan)),
    "all-nan": (FLOATS, lambda t, p, g: torch.full_like(t, math.nan)),
    "some-inf": (FLOATS, _some(float("inf"))),
    "some-negative-inf": (FLOATS, _some(float("-inf"))),
    "zeros": (FLOATS | INTS, lambda t, p, g: torch.zeros_like(t)),
    # integers
    "ones": (INTS, lambda t, p, g: torch.ones_like(t)),
    "minus-ones": (INTS, lambda t, p, g: torch.full_like(t, -1)),
    "duplicates": (INTS, _duplicates),
    "max-id": (INTS, _largest),
    "shuffled": (INTS, _shuffled),
    "big": (frozenset({"int"}), _big),
    "big-ids": (frozenset({"ids"}), _big),  # refused by an embedding, but ids may be hashed
    "negative-ids": (frozenset({"ids"}), _negated),
    "padded-ids": (frozenset({"ids"}), _padded_ids),
    "beyond-32-bits": (WHOLE, _wide(2**33, 2**50)),  # of ids that are hashed: no table ends them
    "whole-dtype": (WHOLE, _whole_dtype),
    # masks
    "all-ones": (MASKS, masks.in_its_sense(masks.whole)),
    "right-padded": (MASKS, masks.in_its_sense(masks.padding(left=False))),
    "left-padded": (MASKS, masks.in_its_sense(masks.padding(left=True))),
    "one-valid": (MASKS, masks.in_its_sense(masks.one_valid)),
    "empty-row": (MASKS, masks.in_its_sense(masks.empty_row)),
    "random-mask": (MASKS, masks.in_its_sense(masks.scattered)),
    "nothing-valid": (MASKS, masks.in_its_sense(masks.nothing_valid)),
    "segments": (MASKS, masks.segments),
    "weights": (MASKS, masks.halves),
    "all-true": (frozenset({"bool"}), lambda t, p, g: torch.ones_like(t)),
    "all-false": (frozenset({"bool"}), lambda t, p, g: torch.zeros_like(t)),
    # lengths
    "short-lengths": (frozenset({"lengths"}), lambda t, p, g: torch.ones_like(t)),
    "equal-lengths": (frozenset({"lengths"}), positions.all_equal),
    "some-empty": (frozenset({"lengths"}), positions.some_empty),
    "all-empty": (frozenset({"lengths"}), lambda t, p, g: torch.zeros_like(t)),
    "unsorted-lengths": (frozenset({"lengths"}), _shuffled),
    # positions
    "later-positions": (frozenset({"positions"}), positions.later),
    "ragged-positions": (frozenset({"positions"}), positions.ragged),
    "gapped-positions": (frozenset({"positions"}), positions.gapped),
    "repeated-positions": (frozenset({"positions"}), positions.repeated),
    "reset-positions": (frozenset({"positions"}), positions.reset),
    "falling-positions": (frozenset({"positions"}), positions.backwards),
    "far-positions": (frozenset({"positions"}), positions.far),
}
