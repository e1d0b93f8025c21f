"""Numbers read from a tensor that only say which element is meant: the file picks the elements by tensors."""

from __future__ import annotations

import torch
from agreement import assert_right_at_each
from torch import nn

import torchferry


class OwnScan(nn.Module):
    """torch's scan as the user wrote it, with a body that reads its step's number, and gives it back."""

    def forward(self, x, y):
        def row(z, number, x, y):
            z = z.clone()
            i = number.item()
            z[i, :] = ((x[i, :] - y) ** 2).sum(dim=-1)
            return [z, number]

        z = torch.zeros(x.shape[0], y.shape[0])
        return torch.ops.higher_order.scan(row, [z], [torch.arange(x.shape[0])], [x, y])[0]


def test_a_body_of_the_users_own_scan_may_read_its_number() -> None:
    torch.manual_seed(0)
    assert_right_at_each(OwnScan(), [(torch.rand(n, 4), torch.rand(m, 4)) for n, m in ((3, 5), (4, 2))])


def test_what_was_done_about_it_is_told() -> None:
    result = torchferry.export(OwnScan().eval(), (torch.rand(3, 4), torch.rand(5, 4)))
    assert [r.code for r in result.repairs] == ["CAP006"]
    assert "index_copy" in result.patch
