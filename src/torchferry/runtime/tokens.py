"""Text to token ids as a decoder's graph takes them: padded on the left, whole or refused, never empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.errors import FeedError, UsageError

if TYPE_CHECKING:
    import torch

FILES = ("tokenizer*", "vocab.*", "merges.txt", "*.model", "*.spm")  # of the many that tokenizers keep, one is always there


def load(directory: str | Path) -> Any:
    """Return the tokenizer of a directory, made ready; UsageError where there is none."""
    place = Path(directory)
    if not present(place):
        raise UsageError(
            f"`{place}` has no tokenizer (no `tokenizer.json`); save one there with `tokenizer.save_pretrained({str(place)!r})`"
        )
    tokenizer = read(place)
    ready(tokenizer)
    return tokenizer


def read(place: Path) -> Any:
    """Return the tokenizer of a directory as it is; code that lies beside it is not run."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    told = logging.get_verbosity()
    logging.set_verbosity_error()  # a model of a class that transformers does not know is no news here
    try:
        return AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # a damaged file, or a library that reads its kind and is not installed: anything is raised
        raise UsageError(f"the tokenizer in `{place}` cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        logging.set_verbosity(told)


def present(directory: Path) -> bool:
    """Whether a directory holds the files of a tokenizer."""
    return any(path.is_file() for pattern in FILES for path in directory.glob(pattern))


def ready(tokenizer: Any, *, left: bool = True) -> tuple[str, ...]:
    """Set what generation needs and the tokenizer leaves open; return what was set, in words.

    left: pad on the left, as a decoder must: the last token of every row is the one that is continued.
    """
    said = []
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
        said.append(
            f"the tokenizer has no pad token; its EOS token {tokenizer.eos_token!r} pads, and the attention mask hides it"
        )
    if left and tokenizer.padding_side != "left":
        _set(tokenizer, "padding_side", "left")
        said.append("padding is on the left: the last token of every row is the one that is continued")
    if left and "token_type_ids" in tokenizer.model_input_names:
        _set(tokenizer, "model_input_names", [n for n in tokenizer.model_input_names if n != "token_type_ids"])
        said.append("the tokenizer no longer gives token_type_ids, which the graph does not take")
    return tuple(said)


def _set(tokenizer: Any, name: str, value: Any) -> None:
    setattr(tokenizer, name, value)
    tokenizer.init_kwargs[name] = value  # `save_pretrained` writes these, and of the attributes only those that are in them


def encode(tokenizer: Any, prompts: Sequence[str], *, longest: int | None = None, new_tokens: int = 0) -> dict[str, torch.Tensor]:
    """Return `input_ids` and `attention_mask` for prompts of any lengths.

    longest, new_tokens: refuse a prompt that leaves no room in the model's position table for what is to be written.
    """
    import torch

    if not prompts:
        raise FeedError("there is no prompt to continue")
    rows = [tokenizer(text)["input_ids"] or _beginning(tokenizer) for text in prompts]
    most = max(map(len, rows))
    refuse_without_room(most, longest, new_tokens)
    if len(rows) > 1 and len({len(r) for r in rows}) > 1 and tokenizer.pad_token_id is None:
        raise FeedError(
            "prompts of different lengths need a pad token and the tokenizer has neither that nor an EOS token to stand in"
        )
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    ids = torch.tensor([[pad] * (most - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (most - len(row)) + [1] * len(row) for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def refuse_without_room(length: int, longest: int | None, new_tokens: int) -> None:
    """Raise FeedError where a prompt leaves no room in the model's position table for what is to be written."""
    if longest is not None and length + new_tokens > longest:
        shorter = f"shorten it to {longest - new_tokens} tokens" if new_tokens < longest else ""
        fewer = f"ask for at most {longest - length} new ones" if length < longest else ""
        raise FeedError(
            f"the prompt is {length} {'token' if length == 1 else 'tokens'} long; with {new_tokens} new ones that is more than "
            f"the {longest} positions the model has: {', or '.join(filter(None, (shorter, fewer))) or 'shorten both'}"
        )


def _beginning(tokenizer: Any) -> list[int]:
    """Return what an empty prompt begins with: the token that stands before a text."""
    for token in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return [token]
    raise FeedError("the prompt is empty, and the tokenizer has no BOS or EOS token to begin with; write a word")
