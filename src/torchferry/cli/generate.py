"""`torchferry generate`: a prompt continued by an exported model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from torchferry.errors import UsageError
from torchferry.escape import spoken, written_json


def there_is(directory: Path) -> None:
    """Raise UsageError unless there is a directory to generate from, before anything that takes seconds to load is loaded."""
    if not directory.is_dir():
        what = "is a file, and what generates is a directory" if directory.exists() else "is not there"
        raise UsageError(f"`{directory}` {what}; make one with `torchferry export hf:MODEL -o {directory.stem}/`")


def run(
    directory: Path,
    prompt: str,
    *,
    max_new_tokens: int = 40,
    sample: bool = False,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    threads: int = 0,
    form: str = "text",
) -> int:
    """Write the prompt and its continuation (an encoder-decoder's answer alone) to stdout, and return the exit code."""
    there_is(directory)
    from torchferry.extras import require
    from torchferry.runtime import configs
    from torchferry.runtime.greedy import Writer

    require("generation", "tokenizers", "onnxruntime")
    writer = None if sample else Writer.of(directory, threads=threads)
    with configs.generating(directory):
        tokens = writer.encoded(prompt, max_new_tokens) if writer is not None else []
        new = writer.continued(tokens, max_new_tokens) if writer is not None and tokens else []
        text, answers = (writer.decoded(new) if writer is not None else ""), False
    if not tokens:
        how = {"do_sample": True, "temperature": temperature, "top_p": top_p} if sample else {"do_sample": False}
        new, text, answers = _by_transformers(directory, prompt, how | {"max_new_tokens": max_new_tokens}, seed, threads)
    if form == "json":
        print(written_json({"prompt": prompt, "text": text, "tokens": new}))
    else:
        sys.stdout.write(spoken(f"{text}\n" if answers else f"{prompt}{text}\n"))
    return 0


def _by_transformers(directory: Path, prompt: str, how: dict[str, Any], seed: int, threads: int) -> tuple[list[int], str, bool]:
    """Return the tokens that transformers' own `generate` writes, their text, and whether that is an encoder-decoder's answer."""
    import torch

    from torchferry.generation import CausalLM, Seq2SeqLM
    from torchferry.runtime import configs, tokens

    answers = all((directory / name).is_file() for name in Seq2SeqLM.graphs)
    kind = Seq2SeqLM if answers else CausalLM
    # one text is written sooner than weights are arranged
    model = kind.from_pretrained(directory, threads=threads, arrange=False)
    if model.main_input_name != "input_ids":
        raise UsageError(f"`{directory}` reads `{model.main_input_name}`, not text: use `torchferry.generation.Seq2SeqLM`")
    tokenizer = tokens.load(directory)
    torch.manual_seed(seed)
    how |= {"pad_token_id": tokenizer.pad_token_id, "return_dict_in_generate": False}
    with configs.generating(directory):
        room = None if answers else model.longest
        inputs = tokens.encode(tokenizer, [prompt], longest=room, new_tokens=how["max_new_tokens"])
        written = model.generate(**inputs, **how)[0]
        new = written[1 if answers else inputs["input_ids"].shape[1] :]  # an answer begins with the decoder's start token
        return new.tolist(), tokenizer.decode(new, skip_special_tokens=True), answers
