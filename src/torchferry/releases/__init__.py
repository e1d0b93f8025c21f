"""Releases of onnxruntime: what each takes and implements, and what a user's `target` therefore means."""

from torchferry.releases.targets import IR_OF_OPSET, Target, parse

__all__ = ["IR_OF_OPSET", "Target", "parse"]
