"""Door to torch's tensor of two real parts, which writes operators on complex numbers with operators on real ones.

Relies on `torch._subclasses.complex_tensor.ComplexTensor`, its parts `re` and `im`, and its table of operators
(`_ops.common.lookup_complex`), as torch 2.13 has them.
Should they move: the class is a few hundred lines of plain Python, and could be written out in `ops/complex_forms.py`.
"""

from __future__ import annotations

from torchferry.foreign.moved import relying_on

with relying_on("torch", "its complex tensor"):
    from torch._subclasses.complex_tensor import ComplexTensor
    from torch._subclasses.complex_tensor._ops.common import lookup_complex

__all__ = ["ComplexTensor", "lookup_complex"]
