"""torchferry carries a PyTorch model across to ONNX and checks that nothing fell overboard.

The names below are the public face. They are loaded when they are first used, so that `import torchferry` and
`torchferry --help` need neither torch nor onnx.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchferry.api import check as check
    from torchferry.api import explain as explain
    from torchferry.api import export as export
    from torchferry.api import verify as verify
    from torchferry.errors import ExportError as ExportError
    from torchferry.errors import FeedError as FeedError
    from torchferry.errors import TorchferryError as TorchferryError
    from torchferry.errors import UsageError as UsageError
    from torchferry.errors import VerifyError as VerifyError
    from torchferry.records import Budget as Budget
    from torchferry.records import Diagnosis as Diagnosis
    from torchferry.records import Edit as Edit
    from torchferry.records import Location as Location
    from torchferry.records import Repair as Repair
    from torchferry.records import Trial as Trial
    from torchferry.result import Result as Result
    from torchferry.runtime.session import InferenceSession as InferenceSession
    from torchferry.translate.register import register_op as register_op

__version__ = "0.1.0"

_HOMES = {
    "torchferry.api": ("check", "explain", "export", "verify"),
    "torchferry.errors": ("ExportError", "FeedError", "TorchferryError", "UsageError", "VerifyError"),
    "torchferry.records": ("Budget", "Diagnosis", "Edit", "Location", "Repair", "Trial"),
    "torchferry.result": ("Result",),
    "torchferry.runtime.session": ("InferenceSession",),
    "torchferry.translate.register": ("register_op",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - computed from one table so that it cannot drift from what is importable


def __getattr__(name: str) -> Any:
    if name == "generation":
        return import_module("torchferry.generation")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'torchferry' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # importing the stage `torchferry.check` would otherwise put its module in the place of the function of that name
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
