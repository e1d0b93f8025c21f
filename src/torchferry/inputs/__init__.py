"""Stage 1 of 9 · inputs: Job -> Bound."""

from torchferry.inputs.binding.bind import bind

__all__ = ["bind"]
