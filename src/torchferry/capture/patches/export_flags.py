"""A model asked whether it is being exported answers as in eager: what is verified is the eager model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from torchferry.capture import source_map
from torchferry.capture.patches.replace import replaced

_FLAGS: tuple[tuple[Any, str], ...] = (
    (torch.onnx, "is_in_onnx_export"),
    (torch.compiler, "is_exporting"),
    (torch.compiler, "is_compiling"),
    (torch.jit, "is_tracing"),
    (torch.jit, "is_scripting"),
)


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Let the flags be False when the user's own code asks; torch and packages go on hearing the truth."""
    with ExitStack() as stack:
        for owner, name in _FLAGS:
            stack.enter_context(replaced(owner, {name: _eager_for_users(getattr(owner, name))}))
        yield


def _eager_for_users(flag: Callable[[], bool]) -> Callable[[], bool]:
    @torch.compiler.assume_constant_result  # dynamo asks once instead of reading the lines below
    def answer() -> bool:
        if source_map.is_user_file(sys._getframe(1).f_code.co_filename):
            return False
        return flag()

    return answer  # type: ignore[no-any-return]
