"""torch.onnx.utils with another `export`, for scripts that go that way; whatever else it has is torch's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchferry.api import export

__all__ = ["export"]


def __getattr__(name: str) -> Any:
    if name == "export":
        from torchferry.api import export

        return export
    if name.startswith("__"):  # what Python asks of any module is not torch's to answer
        raise AttributeError(f"module 'torchferry.onnx.utils' has no attribute {name!r}")
    from torchferry.foreign.torch_onnx import public

    return getattr(public("utils"), name)
