"""torch's loops and branches, as the door has them."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign import torch_control_flow as door


def add(carry: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return carry + x, carry * x


def test_the_names_that_are_written_into_users_code_are_functions_of_torchs() -> None:
    assert callable(eval(door.SCAN, {"torch": torch}))
    assert callable(eval(door.WHILE_LOOP, {"torch": torch}))
    assert door.scan_op is torch.ops.higher_order.scan


def test_a_scan_of_the_eager_run_is_given_the_users_function_and_structures() -> None:
    given: list[Any] = []

    def run(_: Any, combine: Any, init: list[torch.Tensor], xs: list[torch.Tensor]) -> Any:
        given.append((combine.keywords["combine_fn"], len(init), xs[0].shape))
        assert {"spec_init", "spec_xs"} <= set(combine.keywords)
        return "carried", "stacked"

    door.run_scans_by(run)
    try:
        assert door.scan(add, torch.zeros(2), torch.ones(3, 2)) == ("carried", "stacked")
    finally:
        door.run_scans_by(door.compiled_scan)
    assert given == [(add, 1, (3, 2))]


def test_calls_of_scan_can_be_looked_at_first() -> None:
    before = eval(door.SCAN, {"torch": torch})
    with door.scans_called_by(lambda scan, *args, **options: (scan, args, options)):
        scan, args, options = eval(f"{door.SCAN}(1, 2, dim=0)", {"torch": torch})
    assert (scan, args, options) == (before, (1, 2), {"dim": 0})
    assert eval(door.SCAN, {"torch": torch}) is before


def test_what_the_sides_of_a_branch_give_is_merged_by_the_function_given() -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    merged: list[Any] = []

    def merge(plain: Any, a: Any, b: Any, mode: Any) -> Any:
        merged.append((a.shape, b.shape, mode.shape_env is not None))
        return plain(a, b, mode)

    with door.branches_merged_by(merge):
        torch.export.export(Branch(), (torch.ones(2),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), strict=False)
    assert merged
    assert all(known for _, _, known in merged)
