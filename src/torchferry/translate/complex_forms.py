"""Complex operators that torch's own complex tensor lacks, or computes in a way that fails near zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.errors import ForeignApiMoved

aten = torch.ops.aten
POWERS = 64  # whole exponents up to here are multiplied out


@cache
def complex_tensor() -> Any:
    """Return torch's tensor of two real parts, which writes operators on it with operators on them."""
    try:
        from torch._subclasses.complex_tensor import ComplexTensor
    except ImportError as error:
        raise ForeignApiMoved(f"torch {torch.__version__} keeps its complex tensor elsewhere: {error}") from error
    return ComplexTensor


def parts(value: Any) -> tuple[Any, Any]:
    """Return real and imaginary part of a tensor or a number."""
    if isinstance(value, Tensor):
        return (value.re, value.im) if isinstance(value, complex_tensor()) else (value, torch.zeros_like(value))
    return value.real, value.imag


def real_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decomposition that declines complex tensors: its transposes would have to be conjugates."""

    @wraps(function)
    def declining(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        return NotImplemented if any(isinstance(v, Tensor) and v.is_complex() for v in given) else function(*args, **kwargs)

    return declining


class Forms(TorchDispatchMode):
    """Within it complex operators go by the forms below, and by torch's where there is none."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten.to.dtype and args[1].is_complex:
            func, args, kwargs = aten._to_copy.default, args[:1], {"dtype": args[1]}
        packet = getattr(func, "overloadpacket", None)
        makes = getattr(kwargs.get("dtype"), "is_complex", False)
        if packet in MADE and makes:
            return _made(func, args, kwargs)
        if packet in IN_PAIRS:
            return apart(func(*torch.utils._pytree.tree_map(together, args), **kwargs))
        if not any(issubclass(t, complex_tensor()) for t in types):
            return func(*args, **kwargs)
        with self:
            if packet in EACH:
                return _each(func, args, kwargs)
            own = OWN.get(packet)
            return own(*args, **kwargs) if own is not None else _of_torch(func, args, kwargs)


def apart(value: Any) -> Any:
    """Return a complex tensor in two parts; anything else as it is."""
    if not (isinstance(value, Tensor) and value.is_complex()) or isinstance(value, complex_tensor()):
        return value
    pairs = torch.view_as_real(value)
    return complex_tensor()(pairs.select(-1, 0), pairs.select(-1, 1))


def together(value: Any) -> Any:
    """Return a tensor in two parts as a complex one; anything else as it is."""
    return torch.complex(value.re, value.im) if isinstance(value, complex_tensor()) else value


def _of_torch(func: Any, args: Any, kwargs: Any) -> Any:
    from torch._subclasses.complex_tensor._ops.common import lookup_complex

    form = lookup_complex(func, *args, **kwargs)
    return func.decompose(*args, **kwargs) if form is None else form(*args, **kwargs)


def _each(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what an operator that only moves numbers makes of each part."""

    def of(which: int) -> Any:
        here, named = torch.utils._pytree.tree_map(lambda v: _part(v, which), (args, kwargs))
        return func(*here, **named)

    return complex_tensor()(of(0), of(1))


def _part(value: Any, which: int) -> Any:
    return parts(value)[which] if isinstance(value, complex_tensor()) else value


def _made(func: Any, args: Any, kwargs: Any) -> Any:
    """Return a new tensor of one complex number, or of a real tensor's numbers."""
    kwargs = {**kwargs, "dtype": kwargs["dtype"].to_real()}
    if func.overloadpacket is aten._to_copy:
        value = args[0]
        if isinstance(value, complex_tensor()):
            return complex_tensor()(*(func(part, **kwargs) for part in parts(value)))
        real = func(value, **kwargs)
        return complex_tensor()(real, torch.zeros_like(real))
    place = next((i for i, a in enumerate(func._schema.arguments) if a.name in ("fill_value", "s")), None)
    if place is None:  # ones, zeros, arange
        real = func(*args, **kwargs)
        return complex_tensor()(real, torch.zeros_like(real))
    given = [list(args), list(args)]
    for which in (0, 1):
        given[which][place] = parts(args[place])[which]
    return complex_tensor()(*(func(*one, **kwargs) for one in given))


def multiply(self: Any, other: Any) -> Any:
    """Return the product."""
    if isinstance(other, int | float | torch.SymInt | torch.SymFloat):
        return complex_tensor()(self.re * other, self.im * other)
    (a, b), (c, d) = parts(self), parts(other)
    return complex_tensor()(a * c - b * d, a * d + b * c)


def add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return self + alpha * other."""
    (a, b), (c, d) = parts(self), parts(other if alpha == 1 else other * alpha)
    return complex_tensor()(a + c, b + d)


def subtract(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return self - alpha * other."""
    (a, b), (c, d) = parts(self), parts(other if alpha == 1 else other * alpha)
    return complex_tensor()(a - c, b - d)


def reversed_subtract(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Return other - alpha * self."""
    return subtract(other, self, alpha=alpha)


def divide(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return the quotient; the divisor is scaled, so that its square neither overflows nor vanishes."""
    (a, b), (c, d) = parts(self), parts(other)
    if not isinstance(other, complex_tensor() | complex):
        return complex_tensor()(a / other, b / other)
    c, d = (v if isinstance(v, Tensor) else torch.full((), v, dtype=a.dtype) for v in (c, d))
    larger = torch.maximum(c.abs(), d.abs())
    scale = torch.where((larger == 0) | larger.isinf(), torch.ones_like(larger), larger)
    c, d = c / scale, d / scale
    whole = (c * c + d * d) * scale
    return complex_tensor()((a * c + b * d) / whole, (b * c - a * d) / whole)


def reciprocal(self: Any) -> Any:
    """Return 1 / z."""
    return divide(torch.ones_like(self), self)


def power(self: Any, exponent: Any) -> Any:
    """Return the power: whole exponents multiplied out, others by the logarithm, and 0 of 0."""
    if isinstance(exponent, int | float) and float(exponent).is_integer() and abs(exponent) <= POWERS:
        return _multiplied(self, int(exponent))
    result = torch.exp(torch.log(self) * exponent)
    zero = (self.re == 0) & (self.im == 0) if isinstance(self, complex_tensor()) else torch.as_tensor(self) == 0
    return complex_tensor()(*(torch.where(zero, torch.zeros_like(part), part) for part in parts(result)))


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


def index_put(self: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Return `self` with values written to places."""
    return complex_tensor()(*(aten.index_put(a, indices, b, accumulate) for a, b in zip(parts(self), parts(values), strict=True)))


def ones_like(self: Any, **_: Any) -> Any:
    """Return ones."""
    return complex_tensor()(torch.ones_like(self.re), torch.zeros_like(self.im))


MADE = {aten.eye, aten.full, aten.ones, aten.zeros, aten.scalar_tensor, aten.arange, aten._to_copy, aten.full_like, aten.new_full}
IN_PAIRS = {aten._fft_c2c, aten._fft_c2r, aten._fft_r2c, aten.complex, aten.view_as_complex}
EACH = {aten.tril, aten.triu, aten.roll, aten.unfold, aten.diag_embed, aten.take, aten.reflection_pad1d, aten.im2col}
OWN: dict[Any, Callable[..., Any]] = {
    aten.add: add,
    aten.sub: subtract,
    aten.rsub: reversed_subtract,
    aten.mul: multiply,
    aten.div: divide,
    aten.reciprocal: reciprocal,
    aten.pow: power,
    aten.addmm: addmm,
    aten.addcmul: addcmul,
    aten.addcdiv: addcdiv,
    aten.lerp: lerp,
    aten.index_put: index_put,
    aten.ones_like: ones_like,
}
