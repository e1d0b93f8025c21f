"""torch's tensor of two real parts, as the door has it."""

from __future__ import annotations

import torch

from torchferry.foreign import torch_complex as door
from torchferry.foreign.torch_operators import aten


def test_a_complex_tensor_has_two_parts_and_a_table_of_operators() -> None:
    z = door.ComplexTensor(torch.tensor([3.0]), torch.tensor([4.0]))
    assert (z.re.item(), z.im.item(), z.dtype) == (3.0, 4.0, torch.complex64)
    form = door.lookup_complex(aten.abs.default, z)
    assert form is not None
    assert form(z).item() == 5.0
