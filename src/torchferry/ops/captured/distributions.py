"""torch.distributions checks the values of its arguments, which a capture does not have; eager has checked the example."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torchferry.foreign.torch_modules import unvalidated_distributions


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which the checks are off."""
    return unvalidated_distributions()
