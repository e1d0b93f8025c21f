"""A model whose program differs with the sizes: captured once for each side of a guard, the pieces joined by torch.cond."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from torchferry import eager
from torchferry.capture import guards, strategies
from torchferry.capture.attempt import once
from torchferry.capture.parameters import with_parameters
from torchferry.capture.unchanged import same
from torchferry.deadline import TookTooLong
from torchferry.foreign.torch_control_flow import SCAN
from torchferry.foreign.torch_export import unchecked
from torchferry.guards import holds, symbols
from torchferry.records import Bound, Dim

MOST_PIECES = 8  # a program that needs more is a loop written out, and wants another repair
PATIENCE = 60.0  # seconds for all pieces together, or twice as long as the first took
ROUNDING = 1e-3  # relative: a program is in other operators than the model; verification holds the file against far less
QUICK = 10_000  # the product of sizes up to which a model is tried on the spot, so that no trial takes seconds


class TooManyPieces(Exception):
    """The declared ranges are not covered by a handful of captures."""


@dataclass(frozen=True, slots=True)
class ProgramPiece:
    """A program and the conditions on sizes under which it is right."""

    conditions: tuple[str, ...]
    program: Any

    def covers(self, sizes: dict[str, int]) -> bool:
        return all(holds(c, sizes) is not False for c in self.conditions)


def joined(module: Any, bound: Bound, texts: tuple[str, ...]) -> Any:
    """Return one program that is right on every side of the guards in `texts`."""
    strategy = strategies.ordered()[0]
    names = sorted(frozenset().union(*map(symbols, texts)))
    began = time.perf_counter()
    pieces = [ProgramPiece(texts, once(strategy, module, bound.args, bound.dynamic_shapes))]
    until = began + max(PATIENCE, 2 * (time.perf_counter() - began))
    if (program := _general(pieces[0].program, bound)) is not None:
        return program
    refused: list[dict[str, int]] = []
    while (sizes := _uncovered(pieces, bound, names, refused)) is not None:
        if time.perf_counter() > until:
            raise TookTooLong(f"{len(pieces)} captures took {time.perf_counter() - began:.0f} s, and more would be needed")
        if len(pieces) == MOST_PIECES:
            raise TooManyPieces(_too_many(sizes))
        if not _takes(bound, sizes):
            refused.append(sizes)
            continue
        program = once(strategy, eager.fresh(bound.module), bound.vary(sizes, "random", 0), bound.dynamic_shapes)
        conditions = tuple(_conditions(program, bound, sizes, set(names)))
        pieces.append(ProgramPiece(conditions, program))
        if _is_right_elsewhere(pieces[-1], bound, names):
            return program
    return once(strategy, _Joined(module, pieces, bound), bound.args, bound.dynamic_shapes)


def _general(first: Any, bound: Bound) -> Any:
    """Return the program captured at sizes that no window divides, if it is right at the others as well; None if it is not.

    Where an example's sizes need no padding, no cropping and no resampling, the code for these is not in its program.
    """
    names = sorted(set().union(*(f.sizes for f in guards.narrowing(guards.read(first, bound), bound.signature))))
    sizes = _primes(bound, names)
    if not sizes or not _takes(bound, sizes):
        return None
    args = bound.vary(sizes, "random", 0)
    try:
        program = once(strategies.ordered()[0], eager.fresh(bound.module), args, bound.dynamic_shapes)
    except Exception:  # torch may raise anything; the pieces are captured one by one then
        return None
    piece = ProgramPiece(tuple(_conditions(program, bound, sizes, set(names))), program)
    return program if _is_right_elsewhere(piece, bound, names) else None


def _primes(bound: Bound, names: list[str]) -> dict[str, int]:
    """Return sizes a little larger than the example's, without divisors beyond what the model asks for; {} if there are none."""
    found: dict[str, int] = {}
    example = bound.example_sizes
    for name in names:
        dim = bound.signature.dim(name) or Dim(name)
        if name not in example:
            return {}
        start = example[name] // dim.multiple_of + 1
        step = next(n for n in itertools.count(max(start, 2)) if sympy.isprime(n) and n * dim.multiple_of not in found.values())
        found[name] = step * dim.multiple_of
        if dim.high is not None and found[name] > dim.high:
            return {}
    return found


def _takes(bound: Bound, sizes: dict[str, int]) -> bool:
    """Whether the model itself takes these sizes; where a call would take long, the capture will tell."""
    if math.prod(sizes.values()) > QUICK:
        return True
    try:
        eager.call_on_made_input(eager.fresh(bound.module), bound.vary(sizes, "random", 0))
    except Exception:  # no such call, or the model refuses it in its own way
        return False
    return True


def _too_many(sizes: dict[str, int]) -> str:
    told = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return (
        f"after {MOST_PIECES} captures, sizes such as {told} are still not covered: the code is another for every size, as"
        f" that of a loop is; `{SCAN}`, `torch.vmap` or one operation on the whole tensor would do"
    )


def _conditions(program: Any, bound: Bound, sizes: dict[str, int], names: set[str]) -> Iterator[str]:
    """Yield the conditions of a piece on the dims that split the model; that a size is not 1 is only how torch counts."""
    for guard in guards.read(program, bound):
        narrows = guards.counterexample(guard.text, bound.signature) is not None
        if (
            symbols(guard.text) <= names
            and narrows
            and holds(guard.text, sizes)
            and not re.fullmatch(r"Ne\(\w+, 1\)|Ne\(1, \w+\)|\w+ >= 2", guard.text)
        ):
            yield guard.text


def _is_right_elsewhere(piece: ProgramPiece, bound: Bound, names: list[str]) -> bool:
    """Say whether a piece computes what the model does also where its conditions fail: padding by nothing does no harm.

    Such a program needs no other beside it. Only a handful of sizes are tried here; verification tries the file at many more.
    """
    small = [p for p in _grid([piece], bound, names) if min(p.values()) >= 2 and math.prod(p.values()) <= QUICK]
    others = [p for p in small if not piece.covers(p)]
    tried = sorted(others, key=lambda p: sum(p.values()))[:: max(1, len(others) // 8)]
    taken = list(itertools.islice((p for p in tried if _takes(bound, p)), 5))
    run = unchecked(piece.program)  # a file does not check its sizes as torch does
    try:
        with torch.no_grad(), eager.untouched_process(), eager.plainly():
            return bool(taken) and all(_same(run, eager.fresh(bound.module), bound.vary(p, "random", 0)) for p in taken)
    except Exception:  # a program made for other sizes may fail in any way; then it is not right there
        return False


def _same(run: Any, model: Any, args: tuple[Any, ...]) -> bool:
    return same(eager.call(model, args), run(*eager.clone(args)), rtol=ROUNDING, atol=ROUNDING / 10)


def _uncovered(
    pieces: list[ProgramPiece], bound: Bound, names: list[str], refused: list[dict[str, int]]
) -> dict[str, int] | None:
    """Return sizes within the declared ranges that no piece is right for; those of at least 2 first, as torch sets 1 apart."""
    points = _grid(pieces, bound, names)
    open_ones = [p for p in points if p not in refused and not any(piece.covers(p) for piece in pieces)]
    return min(open_ones, key=lambda p: (any(n < 2 for n in p.values()), sum(p.values())), default=None)


def _grid(pieces: list[ProgramPiece], bound: Bound, names: list[str]) -> list[dict[str, int]]:
    """Return sizes within the declared ranges, around those that the conditions speak of."""
    numbers = {int(n) for p in pieces for c in p.conditions for n in re.findall(r"\b\d+\b", c) if int(n) < 10**5}
    dims = [bound.signature.dim(name) or Dim(name) for name in names]
    return [
        dict(zip(names, p, strict=True))
        for p in itertools.islice(itertools.product(*(guards.points(d, numbers) for d in dims)), 5000)
    ]


class _Joined(torch.nn.Module):
    """Runs the piece whose conditions hold for the sizes of the inputs."""

    def __init__(self, module: Any, pieces: list[ProgramPiece], bound: Bound) -> None:
        super().__init__()
        for name, child in module.named_children():  # first, so that the weights keep the names they have in the model
            self.add_module(name, child)
        self.parts = torch.nn.ModuleList([p.program.module(check_guards=False) for p in pieces])
        self.conditions = [p.conditions for p in pieces]
        self.places = bound.signature.places
        self.forward = with_parameters(self._run, list(inspect.signature(bound.module.forward).parameters))

    def _run(self, *tensors: Any) -> Any:
        sizes = {name: tensors[i].shape[axis] for name, (i, axis) in self.places.items()}
        # all of them out here: inside of torch.cond dynamo reads the code, and evaluating text is not for it
        return self._choose(0, tensors, tuple(_hold(texts, sizes) for texts in self.conditions[:-1]))

    def _choose(self, index: int, tensors: tuple[Any, ...], fits: tuple[Any, ...]) -> Any:
        part, count = self.parts[index], len(tensors)
        if not fits:
            return tuple(part(*tensors))

        def here(*given: Any) -> Any:
            return tuple(o.clone() for o in part(*given[:count]))

        def later(*given: Any) -> Any:
            return tuple(o.clone() for o in self._choose(index + 1, given[:count], given[count:]))

        return torch.cond(fits[0], here, later, (*tensors, *fits[1:]))


def _hold(texts: tuple[str, ...], sizes: dict[str, Any]) -> torch.Tensor:
    """Return whether all conditions hold, as a tensor."""
    return functools.reduce(torch.logical_and, (_evaluated(text, sizes) for text in texts), torch.tensor(True))


_TENSOR_WORDS: dict[str, Callable[..., Any]] = {
    "Eq": lambda a, b: a == b,
    "Ne": lambda a, b: a != b,
    "Mod": lambda a, b: a % b,
    "floor": lambda a: torch.floor(a.double()).long(),
    "ceiling": lambda a: torch.ceil(a.double()).long(),
    "sqrt": lambda a: torch.sqrt(a.double()),
    "Max": lambda a, b: torch.maximum(torch.as_tensor(a), torch.as_tensor(b)),
    "Min": lambda a, b: torch.minimum(torch.as_tensor(a), torch.as_tensor(b)),
    "And": lambda *a: torch.stack([torch.as_tensor(x) for x in a]).all(),
    "Or": lambda *a: torch.stack([torch.as_tensor(x) for x in a]).any(),
}


def _evaluated(text: str, sizes: dict[str, Any]) -> torch.Tensor:
    """Return a condition as a tensor: computed in the graph, from the sizes that the inputs turn out to have."""
    given = {name: torch.scalar_tensor(sizes[name], dtype=torch.int64) for name in symbols(text)}
    return torch.as_tensor(eval(compile(text, "<guard>", "eval"), {"__builtins__": {}}, {**_TENSOR_WORDS, **given}))
