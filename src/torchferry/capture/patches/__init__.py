"""What is changed in Python, torch and transformers while a model is captured, and put back afterwards, whatever happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torchferry.capture.patches import (
    constants,
    dynamo_cache,
    export_flags,
    guard_origins,
    hashable_sizes,
    host_random,
    numbers,
    quotients,
    transformers_own,
)
from torchferry.capture.patches.reachable import reached
from torchferry.eager import one_at_a_time
from torchferry.foreign.torch_dynamo import see_all_functions
from torchferry.ops.captured import distributions, looking_functions, scan_lengths, sized_functions, slices, windows
from torchferry.records import Finding

Patch = Callable[[Any], AbstractContextManager[Any]]

# Every patch lets through what it is not meant for, so all of them are on for every capture.
ALL: dict[str, Patch] = {
    "guard-origins": guard_origins.patch,
    "looking-functions": looking_functions.patch,
    "sized-functions": sized_functions.patch,
    "slices": slices.patch,
    "constants": constants.patch,
    "scan-lengths": scan_lengths.patch,
    "hashable-sizes": hashable_sizes.patch,
    "quotients": quotients.patch,
    "dynamo-cache": dynamo_cache.patch,
    "distributions": distributions.patch,
    "windows": windows.patch,
}


@contextmanager
def active(module: Any, notes: list[Finding]) -> Iterator[None]:
    """Apply the patches for as long as the block runs; a failure or Ctrl-C inside takes them away too."""
    see_all_functions()
    with one_at_a_time, ExitStack() as stack:
        for patch in ALL.values():
            stack.enter_context(patch(module))
        found = reached(module)
        stack.enter_context(numbers.patch(found))
        stack.enter_context(export_flags.noted(notes))  # these also note what they saw
        stack.enter_context(host_random.noted(found, notes))
        stack.enter_context(transformers_own.noted(module, notes))
        yield
