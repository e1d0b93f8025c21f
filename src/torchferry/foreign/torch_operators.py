"""Door to torch's operators: the objects behind `torch.ops`, looked up so that one which a release lacks is no crash.

Relies on `torch._ops.OpOverload` with its `_schema`, `_can_decompose` and `_op_dk`, on HigherOrderOperator, on
`torch._C._dispatch_has_kernel_for_dispatch_key`, on the names that operators carry (`_qualified_op_name`, `_name`), on
`torch._VF`, on the operator behind `torch.onnx.ops` (`_symbolic_impl`, since torch 2.8), and on
`torch._library.custom_ops.OPDEFS` (since torch 2.4) with the `_init_fn` of its members.
Should they move: `torch.library` is the public side of all this, and `torch._C._jit_get_all_schemas()` lists the schemas.

Operators come and go: torch 2.14 has neither `aten.cholesky` nor `aten.qr`. `aten` gives an `Absent` for such a name, which no
node of a program ever is; `present` leaves such rows out of a table, and `lookup` returns None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import torch

from torchferry.foreign.moved import moved, relying_on

with relying_on("torch", "the classes of its operators"):
    from torch._library.custom_ops import OPDEFS
    from torch._ops import HigherOrderOperator, OpOverload

    variable_functions = torch._VF
    onnx_placeholder = torch.onnx.ops._symbolic_impl._symbolic_multi_out._opoverload  # stands for any ONNX operator in a program
    _has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    _COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
    for _name in ("_schema", "_can_decompose", "_op_dk"):
        getattr(torch.ops.aten.add.Tensor, _name)

__all__ = [
    "Absent",
    "HigherOrderOperator",
    "OpOverload",
    "aten",
    "can_decompose",
    "composite",
    "custom_bodies",
    "is_mutable",
    "lookup",
    "onnx_placeholder",
    "overloads",
    "present",
    "qualified_name",
    "schema_name",
    "schema_of",
    "variable_functions",
]

Value = TypeVar("Value")


class Absent:
    """Stands for an operator that the installed torch does not have: equal to nothing but itself, and not to be called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return Absent(f"{self.name}.{overload}")

    def __bool__(self) -> bool:
        return False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise moved("torch", f"the operator `{self.name}`", "there is none of that name")


class _Packet:
    """An operator with its overloads, equal to torch's own packet of them; an Absent for an overload that is missing."""

    def __init__(self, packet: Any) -> None:
        self.packet = packet

    def __getattr__(self, overload: str) -> Any:
        found = getattr(self.packet, overload, None)
        return Absent(f"{self.packet}.{overload}") if found is None else found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.packet(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self.packet or (isinstance(other, _Packet) and other.packet is self.packet)

    def __hash__(self) -> int:
        return hash(self.packet)


class _Namespace:
    """The operators of one namespace; an Absent for a name that the installed torch does not have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, operator: str) -> Any:
        packet = getattr(getattr(torch.ops, self.name), operator, None)
        return Absent(f"{self.name}.{operator}") if packet is None else _Packet(packet)


aten: Any = _Namespace("aten")


def lookup(name: str) -> Any | None:
    """Return the operator `namespace::name.overload`, the default overload where none is named; None if torch has none."""
    namespace, found, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None) if found else None
    return getattr(packet, overload or "default", None)


def overloads(operator: Any) -> list[str]:
    """Return the names of an operator's overloads; none for an operator that the installed torch does not have."""
    return [] if isinstance(operator, Absent) else list(operator.overloads())


def present(table: Mapping[Any, Value]) -> dict[Any, Value]:
    """Return a table without the rows of operators that the installed torch does not have."""
    return {target: value for target, value in table.items() if not isinstance(target, Absent)}


def schema_of(target: Any) -> Any:
    """Return the schema of an operator; None for a Python function and for operators that take functions."""
    return getattr(target, "_schema", None)


def schema_name(target: Any) -> str:
    """Return an operator's name with its namespace and without its overload: "aten::add"; nothing for what is no operator."""
    return str(getattr(schema_of(target), "name", ""))


def is_mutable(target: Any) -> bool:
    """Whether an operator writes into an argument."""
    return bool(getattr(schema_of(target), "is_mutable", False))


def can_decompose(target: Any) -> bool:
    """Whether torch itself makes an operator of others, below autograd."""
    return bool(target._can_decompose())


def composite(target: Any) -> Callable[..., Any] | None:
    """Return what torch makes an operator of in C++, also where it was told to leave it whole; None if it does not."""
    if isinstance(target, OpOverload) and _has_kernel(target.name(), _COMPOSITE):
        return partial(target._op_dk, _COMPOSITE)
    return None


def qualified_name(target: Any) -> str:
    """Return the name that an operator, or any other function of torch, goes by."""
    return str(getattr(target, "_qualified_op_name", "") or getattr(target, "_name", "") or getattr(target, "__name__", ""))


def custom_bodies() -> dict[str, Callable[..., Any]]:
    """Return the Python bodies of operators made with `torch.library.custom_op`, by their names."""
    with relying_on("torch", "the bodies of custom operators"):
        return {name: made._init_fn for name, made in OPDEFS.items()}
