"""TorchScript run as Python: a capture can follow an interpreter, where it cannot look into a compiled module.

interpreter  goes through a TorchScript graph node by node
builtins     what TorchScript computes on numbers, lists and dicts, in Python, so that sizes stay symbols
part         a module that stands for a compiled one
"""

from __future__ import annotations

from torchferry.capture.prepare.script.part import is_script, prepare

__all__ = ["is_script", "prepare"]
