"""Forward-mode derivatives by reverse mode: torch.func.jvp and jacfwd, of which no trace keeps the sizes symbolic.

Forward mode gives weights tangents that are zero, and torch adds those up at the sizes of the example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from torchferry.capture.patches.reachable import homes, reached
from torchferry.foreign.replaced import replaced
from torchferry.foreign.torch_tracing import eager_transforms
from torchferry.foreign.torch_trees import tree_map


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return what torch.func.jvp does: the pullback is linear in what it pulls back, and its own pullback is the push."""
    out, pullback, *aux = torch.func.vjp(func, *primals, has_aux=has_aux)
    _, push = torch.func.vjp(pullback, tree_map(torch.zeros_like, out))
    return (out, push(tuple(tangents))[0], *aux)


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **_how: Any) -> Callable[..., Any]:
    """Return what torch.func.jacfwd does: the same matrix, row by row."""
    return torch.func.jacrev(func, argnums, has_aux=has_aux)


_BY_REVERSE = {"jvp": (torch.func.jvp, jvp), "jacfwd": (torch.func.jacfwd, jacfwd)}


@contextmanager
def by_reverse_mode(module: Any) -> Iterator[None]:
    """Let torch.func and the model's code take forward-mode derivatives by reverse mode for the block."""
    with ExitStack() as stack:
        for home in (torch.func, eager_transforms, *homes(reached(module))):
            mine = {name: new for name, (old, new) in _BY_REVERSE.items() if vars(home).get(name) is old}
            stack.enter_context(replaced(home, mine))
        yield
