"""The inside of torch's compiler, as the door has it."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign import torch_dynamo as door
from torchferry.foreign.torch_control_flow import scan
from torchferry.foreign.torch_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torchferry.foreign.torch_tracing import FakeTensorMode


class Scanning(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scan(lambda carry, step: (carry + step, carry.clone()), x[0].clone(), x)[1]


def test_functions_are_known_by_identity_once_they_were_seen() -> None:
    from torch._dynamo import trace_rules

    door.see_all_functions()
    assert torch.add in trace_rules.get_torch_obj_rule_map()
    assert any(isinstance(known, trace_rules.FunctionIdSet) for known in vars(trace_rules).values())


def test_the_limit_on_recompilations_is_off_for_a_while() -> None:
    from torch._dynamo import config

    before = config.recompile_limit, config.accumulated_recompile_limit
    with door.without_recompile_limit():
        assert min(config.recompile_limit, config.accumulated_recompile_limit) > max(before)
    assert (config.recompile_limit, config.accumulated_recompile_limit) == before


def test_what_a_scan_goes_over_is_seen_where_dynamo_reads_it() -> None:
    seen: list[Any] = []
    door.reset()
    with door.scans_seen_by(lambda steps: seen.append(tuple(steps.size()))):
        torch.export.export(Scanning(), (torch.ones(3, 2),), strict=True)
    assert seen == [(3, 2)]


def test_a_tensor_with_a_source_of_its_own_gets_symbols_for_its_sizes() -> None:
    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    free = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    fake = mode.from_tensor(torch.ones(1, 1), source=door.ConstantSource("input_0"), symbolic_context=free)
    assert len({str(size) for size in fake.shape}) == 2
