"""Stage 3 of 9 · translate: Captured -> Translated.

`foreign/torch_onnx.py` is the door to torch.onnx, `ops/` what it lacks or gets wrong, `optimise.py` and `passes/` work on the
graph, `names.py` and `provenance.py` keep the user's words, `opset.py` and `lowering/` fit it to the target, `save.py` writes it.
"""

from __future__ import annotations

from torchferry.translate.stage import translate

__all__ = ["translate"]
