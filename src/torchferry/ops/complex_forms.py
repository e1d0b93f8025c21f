"""Complex operators that torch's own complex tensor lacks, or computes in a way that fails near zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_complex import ComplexTensor, lookup_complex
from torchferry.foreign.torch_dispatch import TorchDispatchMode
from torchferry.foreign.torch_operators import aten, composite, schema_of
from torchferry.foreign.torch_tracing import decomposition_table
from torchferry.foreign.torch_trees import tree_leaves, tree_map

Table = Mapping[Any, Callable[..., Any]]
POWERS = 64  # whole exponents up to here are multiplied out


def parts(value: Any) -> tuple[Any, Any]:
    """Return real and imaginary part of a tensor or a number."""
    if isinstance(value, Tensor):
        return (value.re, value.im) if isinstance(value, ComplexTensor) else (value, torch.zeros_like(value))
    return value.real, value.imag


class Forms(TorchDispatchMode):
    """Within it complex operators go by the forms below, then by torch's, and by their decompositions where it has none."""

    supports_higher_order_operators = True

    def __init__(self, table: Table | None = None) -> None:
        super().__init__()
        self.table = {**decomposition_table, **(table or {})}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.call(func, *args, **(kwargs or {}))

    def call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what an operator gives for complex tensors in two parts, for others, and for complex numbers."""
        if func is aten.to.dtype and args[1].is_complex:
            func, args, kwargs = aten._to_copy.default, args[:1], {"dtype": args[1]}
        packet = getattr(func, "overloadpacket", None)
        leaves = tree_leaves((args, kwargs))
        numbers = any(isinstance(leaf, complex) for leaf in leaves)
        if packet in MADE and (numbers or getattr(kwargs.get("dtype"), "is_complex", False)):
            return _made(func, args, kwargs)
        if packet in IN_PAIRS:
            return apart(func(*tree_map(together, args), **kwargs))
        if not numbers and not any(isinstance(leaf, ComplexTensor) for leaf in leaves):
            return func(*args, **kwargs)
        with self:
            return self._complex(func, packet, args, kwargs)

    def _complex(self, func: Any, packet: Any, args: Any, kwargs: Any) -> Any:
        """Return what the first form gives that does not decline."""
        forms = (
            OWN.get(packet),
            partial(_each, func) if packet in EACH else None,
            lookup_complex(func, *args, **kwargs),
            self.table.get(func),
            getattr(func, "impl_aten", None),  # of a prim, out of one of torch's references
            composite(func),
            partial(_each, func) if getattr(func, "is_view", False) else None,
        )
        results = (form(*args, **kwargs) for form in forms if form is not None)
        return next((result for result in results if result is not NotImplemented), NotImplemented)


def apart(value: Any) -> Any:
    """Return a complex tensor in two parts; anything else as it is."""
    if not (isinstance(value, Tensor) and value.is_complex()) or isinstance(value, ComplexTensor):
        return value
    pairs = torch.view_as_real(value.resolve_conj())
    return ComplexTensor(pairs.select(-1, 0), pairs.select(-1, 1))


def together(value: Any) -> Any:
    """Return a tensor in two parts as a complex one; anything else as it is."""
    return torch.complex(value.re, value.im) if isinstance(value, ComplexTensor) else value


def _each(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what an operator that only moves numbers makes of each part."""
    arguments = schema_of(func).arguments
    numbers = {a.name for a in arguments if str(a.type) == "number"}
    named = {**dict(zip([a.name for a in arguments], args, strict=False)), **kwargs}

    def of(which: int) -> Any:
        here = {name: parts(v)[which] if name in numbers else tree_map(lambda w: _part(w, which), v) for name, v in named.items()}
        return func(*[here[a.name] for a in arguments[: len(args)]], **{name: here[name] for name in kwargs})

    real, imaginary = of(0), of(1)
    if isinstance(real, tuple | list):
        return [ComplexTensor(*pair) for pair in zip(real, imaginary, strict=True)]
    return ComplexTensor(real, imaginary)


def _part(value: Any, which: int) -> Any:
    """Return a part of a tensor of numbers; places, masks and all else as they are."""
    return parts(value)[which] if isinstance(value, Tensor) and (value.is_complex() or value.is_floating_point()) else value


def _made(func: Any, args: Any, kwargs: Any) -> Any:
    """Return a new tensor of one complex number, or of a real tensor's numbers."""
    if (asked := kwargs.get("dtype")) is not None or func.overloadpacket in (aten.full, aten.scalar_tensor):
        kwargs = {**kwargs, "dtype": torch.get_default_dtype() if asked is None else asked.to_real()}
    if func.overloadpacket in FILLED or any(isinstance(a, ComplexTensor) for a in args):
        return _each(func, *args, **kwargs)
    real = func(*args, **kwargs)  # ones, zeros, what was real
    return ComplexTensor(real, torch.zeros_like(real))


def multiply(self: Any, other: Any) -> Any:
    """Return the product."""
    if isinstance(other, int | float | torch.SymInt | torch.SymFloat):
        return ComplexTensor(self.re * other, self.im * other)
    (a, b), (c, d) = parts(self), parts(other)
    return ComplexTensor(a * c - b * d, a * d + b * c)


def add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return self + alpha * other."""
    (a, b), (c, d) = parts(self), parts(other if alpha == 1 else other * alpha)
    return ComplexTensor(a + c, b + d)


def subtract(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return self - alpha * other."""
    (a, b), (c, d) = parts(self), parts(other if alpha == 1 else other * alpha)
    return ComplexTensor(a - c, b - d)


def reversed_subtract(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Return other - alpha * self."""
    return subtract(other, self, alpha=alpha)


def divide(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return the quotient; the divisor is scaled, so that its square neither overflows nor vanishes."""
    (a, b), (c, d) = parts(self), parts(other)
    if not isinstance(other, ComplexTensor | complex):
        return ComplexTensor(a / other, b / other)
    c, d = (v if isinstance(v, Tensor) else torch.full((), v, dtype=a.dtype) for v in (c, d))
    larger = torch.maximum(c.abs(), d.abs())
    scale = torch.where((larger == 0) | larger.isinf(), torch.ones_like(larger), larger)
    c, d = c / scale, d / scale
    whole = (c * c + d * d) * scale
    return ComplexTensor((a * c + b * d) / whole, (b * c - a * d) / whole)


def reciprocal(self: Any) -> Any:
    """Return 1 / z."""
    return divide(torch.ones_like(self), self)


def power(self: Any, exponent: Any) -> Any:
    """Return the power: whole exponents multiplied out, others by the logarithm, and 0 of 0."""
    if isinstance(exponent, int | float) and float(exponent).is_integer() and abs(exponent) <= POWERS:
        return _multiplied(self, int(exponent))
    result = torch.exp(torch.log(self) * exponent)
    zero = (self.re == 0) & (self.im == 0) if isinstance(self, ComplexTensor) else torch.as_tensor(self) == 0
    return ComplexTensor(*(torch.where(zero, torch.zeros_like(part), part) for part in parts(result)))


def _multiplied(base: Any, exponent: int) -> Any:
    if exponent < 0:
        return reciprocal(_multiplied(base, -exponent))
    result = None
    while exponent:
        if exponent % 2:
            result = base if result is None else result * base
        base, exponent = base * base if exponent > 1 else base, exponent // 2
    return torch.ones_like(base) if result is None else result.clone()


def addmm(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * self + alpha * (mat1 @ mat2)."""
    product = torch.mm(mat1, mat2)
    return (self if beta == 1 else self * beta) + (product if alpha == 1 else product * alpha)


def addbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * self + alpha * the sum of batch1 @ batch2."""
    product = torch.bmm(batch1, batch2).sum(0)
    return self * beta + product * alpha


def addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return self + value * tensor1 * tensor2."""
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * value)


def addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return self + value * tensor1 / tensor2."""
    return self + tensor1 / tensor2 * value


def lerp(self: Any, end: Any, weight: Any) -> Any:
    """Return the point between two others."""
    return self + (end - self) * weight


def nonzero(self: Any) -> Any:
    """Return the places of what is not 0."""
    return torch.nonzero((self.re != 0) | (self.im != 0))


def masked_select(self: Any, mask: Tensor) -> Any:
    """Return what lies under the mask, in one row."""
    self, mask = torch.broadcast_tensors(self, mask)
    return aten.index(self, mask.nonzero().unbind(-1))


FILLED = {aten.full, aten.full_like, aten.new_full, aten.scalar_tensor}
MADE = FILLED | {aten.eye, aten.ones, aten.zeros, aten.arange, aten._to_copy, aten.new_ones, aten.linspace}
IN_PAIRS = {aten._fft_c2c, aten._fft_c2r, aten._fft_r2c, aten.complex, aten.view_as_complex}
EACH = {  # what only moves numbers, or puts given ones; views do so as well
    *(aten.tril, aten.triu, aten.roll, aten.diag_embed, aten.take, aten.reflection_pad1d, aten.im2col, aten.replication_pad1d),
    *(aten.scatter, aten.index_put, aten._unsafe_index, aten._unsafe_index_put, aten.index_fill, aten.full_like, aten.new_full),
    *(aten.diagonal_copy, aten.view_copy, aten.fill, aten.masked_scatter),
}
OWN: dict[Any, Callable[..., Any]] = {
    aten.add: add,
    aten.sub: subtract,
    aten.rsub: reversed_subtract,
    aten.mul: multiply,
    aten.div: divide,
    aten.reciprocal: reciprocal,
    aten.pow: power,
    aten.addmm: addmm,
    aten.addbmm: addbmm,
    aten.addcmul: addcmul,
    aten.addcdiv: addcdiv,
    aten.lerp: lerp,
    aten.nonzero: nonzero,
    aten.masked_select: masked_select,
    aten.sign: torch.sgn,
    aten.exp2: lambda z: torch.exp(z * math.log(2)),
    aten.log2: lambda z: torch.log(z) / math.log(2),
    aten.log10: lambda z: torch.log(z) / math.log(10),
}
