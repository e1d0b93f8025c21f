"""Door to torch's compiler front end (`torch._dynamo`), which reads bytecode where a capture is strict and in bodies of loops.

Relies on `trace_rules` (get_torch_obj_rule_map, FunctionIdSet) and `variables.misc.get_np_to_tnp_map`, which know functions by
their identity; on `config.recompile_limit` and `accumulated_recompile_limit`; on
`variables.higher_order_ops.ScanHigherOrderVariable._call_function` and `utils.get_fake_value`; and on `source.ConstantSource`.
Should they move: torch.compiler is the public side (`torch.compiler.reset`, `set_stance`), without any of these.
Importing this takes seconds, so what can do without it does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torchferry.foreign.moved import relying_on
from torchferry.foreign.replaced import replaced

with relying_on("torch", "the inside of its compiler"):
    from torch._dynamo import config, reset, trace_rules
    from torch._dynamo.source import ConstantSource
    from torch._dynamo.utils import get_fake_value
    from torch._dynamo.variables.higher_order_ops import ScanHigherOrderVariable
    from torch._dynamo.variables.misc import get_np_to_tnp_map

    _torch_functions = trace_rules.get_torch_obj_rule_map
    _FunctionIdSet = trace_rules.FunctionIdSet
    _call_scan = ScanHigherOrderVariable._call_function

__all__ = ["ConstantSource", "reset", "scans_seen_by", "see_all_functions", "without_recompile_limit"]


def see_all_functions() -> None:
    """Let dynamo see all functions before they are wrapped: it knows them by their identity, and looks them up once."""
    _torch_functions()
    get_np_to_tnp_map()
    for known in vars(trace_rules).values():
        if isinstance(known, _FunctionIdSet):
            known()


def without_recompile_limit() -> AbstractContextManager[Any]:
    """Return a context without the limit on how often the same code may be compiled."""
    return config.patch(recompile_limit=10**6, accumulated_recompile_limit=10**6)  # type: ignore[attr-defined, no-any-return]


def scans_seen_by(look: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Return a context in which `look` is shown each stand-in tensor that a scan goes over where dynamo reads its call."""

    def seen(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        for step in args[2].unpack_var_sequence(tx) if len(args) > 2 else ():
            look(get_fake_value(step.as_proxy().node, tx))
        return _call_scan(self, tx, args, kwargs)

    return replaced(ScanHigherOrderVariable, {_call_scan.__name__: seen})
