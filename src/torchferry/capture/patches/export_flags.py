"""A model asked whether it is being exported answers as in eager: what is verified is the eager model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from torchferry.foreign.replaced import replaced
from torchferry.records import Finding, Location
from torchferry.records.findings import ExportFlag
from torchferry.whose_code import is_users

_FLAGS: tuple[tuple[Any, str], ...] = (
    (torch.onnx, "is_in_onnx_export"),
    (torch.compiler, "is_exporting"),
    (torch.compiler, "is_compiling"),
    (torch.jit, "is_tracing"),
    (torch.jit, "is_scripting"),
)


@contextmanager
def noted(notes: list[Finding]) -> Iterator[None]:
    """Let the flags be False, and note it, when the user's own code asks; torch and packages go on hearing the truth."""
    with ExitStack() as stack:
        for owner, name in _FLAGS:
            stack.enter_context(replaced(owner, {name: _eager_for_users(getattr(owner, name), name, notes)}))
        yield


def _eager_for_users(flag: Callable[[], bool], name: str, notes: list[Finding]) -> Callable[[], bool]:
    @torch.compiler.assume_constant_result  # dynamo asks once instead of reading the lines below
    def answer() -> bool:
        asking = sys._getframe(1)
        if is_users(asking.f_code.co_filename):
            finding = ExportFlag(name, location=Location(file=asking.f_code.co_filename, line=asking.f_lineno))
            if finding not in notes:
                notes.append(finding)
            return False
        return flag()

    return answer  # type: ignore[no-any-return]
