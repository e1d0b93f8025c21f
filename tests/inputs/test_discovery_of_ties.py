"""Random small models with random ties between sizes are discovered exactly."""

from __future__ import annotations

from collections import defaultdict

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchferry.inputs import bind
from torchferry.records import Bound, Case, Job

SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def bound(job: Job) -> Bound:
    step = bind(Case(job))
    assert step.fault is None, step.fault
    return step.value


def classes(shapes: list[tuple[object, ...]]) -> set[frozenset[tuple[int, int]]]:
    """Return which axes share a moving size."""
    found = defaultdict(set)
    for i, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if isinstance(size, str):
                found[size].add((i, axis))
    return {frozenset(axes) for axes in found.values()}


class Einsum(torch.nn.Module):
    """A product of its inputs and of a weight, with the sizes tied by letters; those in the weight are fixed."""

    def __init__(self, terms: list[str], fixed: str, sizes: dict[str, int]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn([sizes[c] for c in fixed]))
        letters = sorted(set("".join(terms)))
        self.equation = f"{','.join([*terms, fixed])}->{''.join(letters[:2])}"

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return torch.einsum(self.equation, *tensors, self.weight)


class Checked(torch.nn.Module):
    """Raises unless its sizes are as the letters say, as user code does."""

    def __init__(self, terms: list[str], fixed: str, sizes: dict[str, int]) -> None:
        super().__init__()
        self.terms, self.fixed = terms, {c: sizes[c] for c in fixed}

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = dict(self.fixed)
        for term, tensor in zip(self.terms, tensors, strict=True):
            for letter, size in zip(term, tensor.shape, strict=True):
                if seen.setdefault(letter, size) != size:
                    raise ValueError(f"{letter} must be {seen[letter]}")
        return tuple(t * 2 for t in tensors)


@st.composite
def tied(draw: st.DrawFn) -> tuple[list[str], str, dict[str, int]]:
    letters = "abcd"
    terms = draw(st.lists(st.text(letters, min_size=1, max_size=3), min_size=1, max_size=3))
    terms = ["".join(dict.fromkeys(t)) for t in terms]
    used = sorted(set("".join(terms)))
    fixed = "".join(draw(st.lists(st.sampled_from(used), max_size=2, unique=True)))
    sizes = {c: draw(st.integers(2, 6)) for c in used}
    return terms, fixed, sizes


def expected(terms: list[str], fixed: str) -> set[frozenset[tuple[int, int]]]:
    found = defaultdict(set)
    for i, term in enumerate(terms):
        for axis, letter in enumerate(term):
            if letter not in fixed:
                found[letter].add((i, axis))
    return {frozenset(axes) for axes in found.values()}


@SETTINGS
@given(tied())
def test_ties_made_by_a_product_are_found(model: tuple[list[str], str, dict[str, int]]) -> None:
    terms, fixed, sizes = model
    tensors = tuple(torch.randn([sizes[c] for c in term]) for term in terms)
    found = bound(Job(Einsum(terms, fixed, sizes), tensors))
    assert classes([s.shape for s in found.signature.inputs]) == expected(terms, fixed), [s.shape for s in found.signature.inputs]


@SETTINGS
@given(tied())
def test_ties_made_by_checks_in_python_are_found(model: tuple[list[str], str, dict[str, int]]) -> None:
    terms, fixed, sizes = model
    tensors = tuple(torch.randn([sizes[c] for c in term]) for term in terms)
    found = bound(Job(Checked(terms, fixed, sizes), tensors))
    assert classes([s.shape for s in found.signature.inputs]) == expected(terms, fixed), [s.shape for s in found.signature.inputs]


@SETTINGS
@given(st.integers(2, 5), st.integers(2, 5), st.integers(2, 5))
def test_a_size_that_is_the_sum_of_two_others_is_found(batch: int, one: int, two: int) -> None:
    class Joined(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, y], 1) * z

    found = bound(Job(Joined(), (torch.randn(batch, one), torch.randn(batch, two), torch.randn(batch, one + two))))
    x, y, z = (s.shape for s in found.signature.inputs)
    assert x[0] == y[0] == z[0] == "batch_size"
    assert {x[1], y[1]} <= {d.name for d in found.signature.dims}
    assert x[1] != y[1]
    assert z[1] in (f"{x[1]} + {y[1]}", f"{y[1]} + {x[1]}")


@SETTINGS
@given(st.integers(2, 5), st.integers(2, 4))
def test_a_size_that_is_a_multiple_of_another_is_found(batch: int, times: int) -> None:
    class Repeated(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.repeat_interleave(times, 0) + y

    found = bound(Job(Repeated(), (torch.randn(batch, 3), torch.randn(batch * times, 3))))
    x, y = (s.shape for s in found.signature.inputs)
    assert x[1] == y[1]
    assert y[0] == f"{times}*{x[0]}"


@SETTINGS
@given(st.integers(2, 4), st.integers(2, 4), st.integers(2, 3))
def test_the_levels_of_a_pyramid_move_together_and_height_and_width_apart(high: int, wide: int, levels: int) -> None:
    class Pyramid(torch.nn.Module):
        def forward(self, maps: list[torch.Tensor]) -> torch.Tensor:
            top = maps[-1]
            for finer in reversed(maps[:-1]):
                top = finer + torch.nn.functional.interpolate(top, scale_factor=2)
            return top

    maps = [torch.randn(2, 3, high * 2**k, wide * 2**k) for k in reversed(range(levels))]
    shapes = [s.shape for s in bound(Job(Pyramid(), (maps,))).signature.inputs]
    _, _, height, width = shapes[-1]
    assert height != width
    assert [s[2:] for s in shapes[:-1]] == [(f"{2**k}*{height}", f"{2**k}*{width}") for k in range(levels - 1, 0, -1)]


def test_where_two_sizes_exclude_each_other_the_batch_moves_and_the_other_says_why() -> None:
    class Grouped(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(-1, 3, 4).amax(1)

    found = bound(Job(Grouped(), (torch.randn(12, 4),))).signature
    assert found.inputs[0].shape == ("batch_size", 4)
    assert found.dims[0].multiple_of == 3
    assert "is invalid" in found.inputs[0].why[1]
