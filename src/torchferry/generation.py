"""Text generation on what `torchferry export hf:MODEL -o DIRECTORY` wrote: `CausalLM.from_pretrained("DIRECTORY")`."""

from __future__ import annotations

from torchferry.errors import MissingDependency

try:
    from torchferry.runtime.generation import CausalLM
    from torchferry.runtime.seq2seq import Seq2SeqLM
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise MissingDependency("generation needs transformers; install it with `pip install 'torchferry[transformers]'`") from error

__all__ = ["CausalLM", "Seq2SeqLM"]
