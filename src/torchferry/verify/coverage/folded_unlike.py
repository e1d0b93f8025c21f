"""What a folded weight that is not the model's would have to be: the model's layer with the normalisation behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import onnx

from torchferry.verify.coverage.equality import orders
from torchferry.verify.coverage.recipes import Normalised
from torchferry.verify.coverage.stored import Stored
from torchferry.verify.coverage.unlike import Unlike, beside
from torchferry.verify.coverage.weights import Weights

LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")  # operators that a normalisation is folded into


def folded_unlike(work: Weights, graph: onnx.GraphProto, norms: dict[str, float]) -> Iterator[Unlike]:
    """Yield, for each weight of a layer that was not found, how it differs from the model's next one with a normalisation."""
    missing = {s.name: s for s in work.missing if s.is_float}
    known = {f.stored.name: f.recipe for f in work.found if isinstance(f.recipe, Normalised)}
    left = [n for n in work.unfound if work.tensors[n].ndim > 1]
    for node in graph.node:
        if node.op_type not in LAYERS or not norms:
            continue
        weight, bias = ([*node.input, "", ""][slot] for slot in (1, 2))
        recipe = known.get(weight)
        if weight in missing:
            recipe = _next(work, missing[weight], left, norms)
            if recipe is not None and (found := _unlike(work, missing[weight], recipe)) is not None:
                left.remove(str(recipe.weight))
                yield found
        if bias in missing and recipe is not None:
            found = _unlike(work, missing[bias], _bias(work, missing[bias], recipe))
            yield from [found] if found is not None else []


def _next(work: Weights, one: Stored, left: list[str], norms: dict[str, float]) -> Normalised | None:
    """Return the model's first weight of that size that is left, with the first normalisation behind it that fits."""
    names = list(work.tensors)
    for name in left:
        tensor = work.tensors[name]
        if tensor.size != one.size:
            continue
        for norm, eps in norms.items():
            channels = work.tensors[f"{norm}running_var"].size
            if names.index(f"{norm}running_var") > names.index(name) and channels in tensor.shape[:2]:
                axis = tensor.shape.index(channels)
                return Normalised(name, norm, eps, _order(one, tensor.shape), axis, one.shape, one.dtype)
    return None


def _order(one: Stored, shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes, wanted = [s for s in shape if s != 1], [s for s in one.shape if s != 1]
    return next((o for o in orders(len(sizes)) if [sizes[i] for i in o] == wanted), tuple(range(len(sizes))))


def _bias(work: Weights, one: Stored, recipe: Normalised) -> Normalised:
    own = f"{str(recipe.weight).rpartition('.')[0]}.bias"
    return Normalised(own if own in work.tensors else None, recipe.norm, recipe.eps, (0,), -1, one.shape, one.dtype)


def _unlike(work: Weights, one: Stored, recipe: Normalised) -> Unlike | None:
    made = recipe.made(work.tensors, {})
    found = beside(one, one.values(), "", made, meant=True) if made is not None and made.size == one.size else None
    return replace(found, near=recipe) if found is not None else None
