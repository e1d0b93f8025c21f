"""Ways to fill inputs that take numbers: `near 0.3`, `spread 100`, `rows 1000 64`, `times 1e+06`.

A number that a model compares with, clips to or indexes by is one that values must lie on both sides of, and on. The ways work
on fractions and whole numbers alike; one that the dtype cannot hold is no such call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch

from torchferry.inputs.values.roles import FLOATS, NUMBERS, Fill, InputRole, Role

Draw = Callable[[torch.Tensor, torch.Generator], torch.Tensor]  # a plausible tensor -> values in float64
COUNTED: frozenset[Role] = frozenset({"int", "ids", "number"})
CLOSE = (
    0.0,
    2.0**-23,
    -(2.0**-23),
    2.0**-10,
    -(2.0**-10),
    2.0**-7,
    -(2.0**-7),
    0.1,
    -0.1,
)  # shares of a number: one last bit of each dtype


def _near(number: float) -> Fill:
    """Return values on, just beside and around a number; some stay as they were, so that the number also has a neighbour."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        other, choice = (torch.randint(0, most, tensor.shape, generator=generator) for most in (4, 5 * len(CLOSE)))
        if tensor.is_floating_point():
            beside = number + torch.tensor(CLOSE, dtype=torch.float64) * (abs(number) or 1.0)
            around = number + torch.randn(tensor.shape, generator=generator, dtype=torch.float64) * (abs(number) or 1.0)
            return torch.where(other == 0, around, beside[choice % len(CLOSE)])
        low = math.floor(number)
        steps = torch.tensor([low, low, low - 1, low + 1, low + (low != number)])
        return _whole(torch.where(other == 0, tensor.to(torch.int64), steps[choice % 5]), tensor)

    return fill


def _around(draw: Callable[[float], Draw]) -> Callable[[float], Fill]:
    """Return a way whose values are drawn in float64, and are rounded and checked where the input is of whole numbers."""

    def way(number: float) -> Fill:
        def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
            values = draw(number)(tensor, generator)
            return values if tensor.is_floating_point() else _whole(values.floor().to(torch.int64), tensor)

        return fill

    return way


def _at(number: float) -> Draw:
    return lambda tensor, generator: torch.full(tensor.shape, number, dtype=torch.float64)


def _beyond(sign: int) -> Callable[[float], Draw]:
    """Return draws that lie wholly on one side of a number, some of them close to it."""

    def way(number: float) -> Draw:
        def draw(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            steps = 2.0 ** -torch.randint(0, 10, tensor.shape, generator=generator).to(torch.float64)
            if tensor.is_floating_point():
                return number + sign * steps * (abs(number) or 1.0)
            edge = math.floor(number) + 1 if sign > 0 else math.ceil(number) - 1
            return edge + sign * (steps * max(abs(number), 3.0)).floor()

        return draw

    return way


def _spread(number: float) -> Draw:
    """Return draws from 0 to a number and somewhat beyond either end; whole numbers keep within them."""

    def draw(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        share = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
        return number * (1.2 * share - 0.1) if tensor.is_floating_point() else share * (number + (1 if number > 0 else -1))

    return draw


def _up_to(number: float) -> Draw:
    """Return draws from 0 to a number, both ends among them where there is room."""

    def draw(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        share = torch.rand(tensor.numel(), generator=generator, dtype=torch.float64)
        share[: min(2, share.numel())] = torch.tensor([1.0, 0.0], dtype=torch.float64)[: min(2, share.numel())]
        return (number * share)[torch.randperm(share.numel(), generator=generator)].reshape(tensor.shape)

    return draw


def _times(factor: float) -> Fill:
    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        return tensor * factor

    return fill


def _plus(offset: float) -> Fill:
    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        return tensor + offset

    return fill


def _later(offset: float) -> Fill:
    """Return the same whole numbers from another one on: two moments of today are as far apart as two of 1970."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        return _whole(tensor.to(torch.int64) + int(offset), tensor)

    return fill


def _rows(number: float, start: float = 0.0, offset: float = 0.0) -> Fill:
    """Return the rows of a table one after the other, evenly over all of it where there are too many, last one first.

    `start` says with which of them to begin, `offset` by which number the first row goes: months are counted from 1.
    """

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        count, size, first = int(number), tensor.numel(), int(start)
        if count < 1 or not size:
            raise ValueError(f"no table has {count} rows")
        places = torch.arange(size) + first
        if not first and size < count:  # the last, the first, and some between
            places = count - 1 - (torch.arange(size) * (count - 1)) // max(size - 1, 1)
        order = torch.randperm(size, generator=generator)
        return _whole((places % count + int(offset))[order].reshape(tensor.shape), tensor)

    return fill


def _numbers(*given: float) -> Fill:
    """Return certain whole numbers, over and over: the rows of a table that nothing has looked up yet."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        chosen = torch.tensor([int(n) for n in given])
        return _whole(chosen[torch.arange(tensor.numel()) % len(chosen)].reshape(tensor.shape), tensor)

    return fill


def _between_rows(number: float, start: float = 0.0, offset: float = 0.0) -> Fill:
    """Return the rows of a table as fractions, away from where cutting them off gives another row; of whole numbers none."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        if not tensor.is_floating_point():
            raise ValueError("whole numbers lie between no rows")
        return _rows(number, start, offset)(tensor, part, generator) + 0.4

    return fill


def _rows_from_end(number: float) -> Fill:
    """Return negative indices: the rows of a table counted from its end."""

    def fill(tensor: torch.Tensor, part: InputRole, generator: torch.Generator) -> torch.Tensor:
        made = _rows(number)(tensor, part, generator)
        return _whole(made.to(torch.int64) - int(number), tensor)

    return fill


def _powers(number: float) -> Draw:
    """Return numbers of either sign from as much below one as above, every decade alike; whole ones from one on."""
    decades = math.log10(number)

    def draw(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        least = -decades if tensor.is_floating_point() else 0.0
        power = least + (decades - least) * torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
        sign = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
        return sign * 10**power

    return draw


def _whole(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return whole numbers in the dtype of a tensor; ValueError where it cannot hold them."""
    if like.is_floating_point():
        return values.to(torch.float64)
    if like.dtype == torch.bool:
        raise ValueError("a boolean lies on no side of a number")
    info = torch.iinfo(like.dtype)
    if values.numel() and (int(values.min()) < info.min or int(values.max()) > info.max):
        raise ValueError(f"{like.dtype} does not go so far")
    return values.to(like.dtype)


AMOUNTS: Mapping[str, tuple[frozenset[Role], Callable[..., Fill]]] = {
    "near": (NUMBERS, _near),
    "at": (NUMBERS, _around(_at)),
    "below": (NUMBERS, _around(_beyond(-1))),
    "above": (NUMBERS, _around(_beyond(1))),
    "spread": (NUMBERS, _around(_spread)),
    "up-to": (NUMBERS, _around(_up_to)),
    "powers": (NUMBERS, _around(_powers)),
    "times": (FLOATS, _times),
    "plus": (FLOATS, _plus),
    "later": (COUNTED, _later),
    "rows": (NUMBERS, _rows),
    "numbers": (NUMBERS, _numbers),
    "between-rows": (NUMBERS, _between_rows),
    "rows-from-end": (NUMBERS, _rows_from_end),
}
