"""Numbers where an operator's schema has a tensor, made tensors: `1.0 - mask` is traced as `aten.sub(1.0, mask)`.

torch itself takes that, but its pass that makes type promotion explicit looks for an overload with a number in front and
finds none.
"""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.torch_operators import aten, schema_of


def numbers_as_tensors(graph: torch.fx.Graph) -> None:
    """Put a scalar tensor, of the type that torch would compute in, in place of each number in front of a tensor."""
    for node in list(graph.nodes):
        if node.op != "call_function" or not _number_first(node):
            continue
        other = node.args[1].meta["val"]
        dtype = torch.result_type(other, node.args[0])
        with graph.inserting_before(node):
            made = graph.call_function(aten.scalar_tensor.default, (node.args[0],), {"dtype": dtype})
        with other.fake_mode:
            made.meta["val"] = torch.scalar_tensor(node.args[0], dtype=dtype)
        made.meta.update({k: v for k, v in node.meta.items() if k != "val"})  # it stands at the same line of the source
        node.args = (made, *node.args[1:])


def _number_first(node: Any) -> bool:
    schema = schema_of(node.target)
    if schema is None or len(node.args) < 2 or not isinstance(node.args[0], int | float):
        return False
    wants_tensor = str(schema.arguments[0].type) == "Tensor"
    return wants_tensor and isinstance(node.args[1], torch.fx.Node) and hasattr(node.args[1].meta.get("val"), "fake_mode")
