"""torch.onnx with another `export`: `import torchferry.onnx as onnx` in place of `import torch.onnx as onnx`.

`export` converts and verifies, `ONNXProgram` is what it returns, `OnnxExporterError` what it raises. Whatever else torch.onnx has
is torch's own, looked up when it is used. A script that says `torch.onnx.export` is served by `torch.onnx = torchferry.onnx`.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchferry.api import export
    from torchferry.errors import TorchferryError as OnnxExporterError
    from torchferry.result import Result as ONNXProgram

__all__ = ["ONNXProgram", "OnnxExporterError", "export"]

NOT_ASKED = (
    "register_custom_op_symbolic changes nothing here: it is for the exporter that goes through TorchScript. Give a translation "
    "to `export(..., custom_translation_table={torch.ops.my.op.default: function})`, or to `torchferry.register_op`"
)


def __getattr__(name: str) -> Any:
    if name == "export":
        from torchferry.api import export

        return export
    if name == "ONNXProgram":
        from torchferry.result import Result

        return Result
    if name == "OnnxExporterError":
        from torchferry.errors import TorchferryError

        return TorchferryError
    if name == "utils":
        return importlib.import_module("torchferry.onnx.utils")
    if name == "register_custom_op_symbolic":
        warnings.warn(NOT_ASKED, UserWarning, stacklevel=2)
    if name.startswith("__"):  # what Python asks of any module is not torch's to answer
        raise AttributeError(f"module 'torchferry.onnx' has no attribute {name!r}")
    from torchferry.foreign.torch_onnx import public

    return public(name)


def __dir__() -> list[str]:
    from torchferry.foreign.torch_onnx import public

    return sorted({*globals(), *__all__, *public("__all__")})
