"""Text generation on what `torchferry export hf:MODEL -o DIRECTORY` wrote: `CausalLM.from_pretrained("DIRECTORY")`."""

from __future__ import annotations

from torchferry.extras import require

require("generation", "transformers", "torch", "onnxruntime")

from torchferry.runtime.generation import CausalLM  # noqa: E402 - it needs those packages at once
from torchferry.runtime.seq2seq import Seq2SeqLM  # noqa: E402

__all__ = ["CausalLM", "Seq2SeqLM"]
