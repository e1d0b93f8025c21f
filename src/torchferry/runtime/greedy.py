"""A prompt continued by the likeliest token, again and again, without torch and transformers: these take seconds to load.

It is what transformers' `generate` writes where nothing is asked of it but greedy search: for what a directory's documents may
ask beyond that, `Writer.of` gives None, and transformers is asked. The tokenizer is the file `tokenizer.json` that every export
writes, read by the library that transformers itself reads it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torchferry import intake
from torchferry.foreign import onnxruntime as ort
from torchferry.runtime import configs, directories
from torchferry.runtime.tokens import refuse_without_room

GRAPH = "model.onnx"
# what a generation config may say without changing what greedy search writes; of anything else, that it is not wanted
WITHOUT_EFFECT = {
    "_from_model_config", "bos_token_id", "do_sample", "eos_token_id", "max_length", "max_new_tokens", "pad_token_id",
    "temperature", "top_k", "top_p", "transformers_version", "use_cache",
}  # fmt: skip
# classes that leave all to tokenizer.json; others may do something of their own to a text
TOKENIZERS = {"GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"}
NUMBERS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


@dataclass(frozen=True)
class Writer:
    """A decoder's graph with its tokenizer, opened."""

    session: Any
    tokenizer: Any
    ends: frozenset[int]
    longest: int | None

    @classmethod
    def of(cls, place: Path, *, threads: int = 0) -> Writer | None:
        """Return the directory's, or None where its documents, or its graph, ask for more than this does."""
        if not all((place / name).is_file() for name in (GRAPH, directories.RECORD, "config.json", "tokenizer.json")):
            return None
        known = directories.record(place, (GRAPH,))
        configs.read(place / "config.json")  # which may be refused
        ends = _ends(place / "generation_config.json")
        if known.task != "text-generation" or ends is None or not _plain(place / "tokenizer_config.json"):
            return None
        if (tokenizer := _tokenizer(place / "tokenizer.json")) is None:
            return None
        settings = {"level": known.settings.level, "disabled": known.settings.disabled, "threads": threads}
        session = directories.opened(place / GRAPH, arrange=False, **settings)
        fed = all(i.type in NUMBERS for i in session.get_inputs())
        return cls(session, tokenizer, ends, known.longest) if fed else None

    def encoded(self, text: str, count: int) -> list[int]:
        """Return the tokens of a text; FeedError where they leave no room for so many new ones."""
        tokens = list(self.tokenizer.encode(text).ids)
        refuse_without_room(len(tokens), self.longest, count)
        return tokens

    def decoded(self, tokens: list[int]) -> str:
        """Return the text of tokens, without those that stand for no text."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def continued(self, tokens: list[int], count: int) -> list[int]:
        """Return at most so many tokens that follow; the last may be one that ends a text."""
        past: dict[str, Any] = {}
        new, written = tokens, list[int]()
        while len(written) < count:
            logits, past = self._step(new, len(tokens) + len(written), past)
            new = [int(logits.argmax())]  # the first of equals, as torch's own
            written += new
            if new[0] in self.ends:
                break
        return written

    def _step(self, new: list[int], total: int, past: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the logits after the last token, and what is remembered: onnxruntime's own values, never copied."""
        given = {
            "input_ids": np.array([new]),
            "attention_mask": np.ones((1, total)),
            "position_ids": np.arange(total - len(new), total)[None],
            "logits_to_keep": np.ones(1),
        }
        feeds: dict[str, Any] = {}
        for taken in (*self.session.get_inputs(), *self.session.get_overridable_initializers()):
            if taken.name in given:
                feeds[taken.name] = ort.ort_value(given[taken.name].astype(NUMBERS[taken.type]))
            elif taken.name.startswith("past_key_values."):
                feeds[taken.name] = past[taken.name] if past else ort.ort_value(_nothing(taken))
        names = [o.name for o in self.session.get_outputs()]
        logits, *present = self.session.run_with_ort_values(names, feeds)
        return logits.numpy()[0, -1].astype(np.float32), dict(zip(_remembered(self.session), present, strict=True))


def _remembered(session: Any) -> list[str]:
    """Return the inputs that take what the graph gave at the step before, in the order of those outputs."""
    return [i.name for i in session.get_inputs() if i.name.startswith("past_key_values.")]


def _nothing(taken: Any) -> Any:
    """Return what is remembered before the first token: no keys and values, and zeros where the size of a state is fixed."""
    return np.zeros((1, *(n if isinstance(n, int) else 0 for n in taken.shape[1:])), NUMBERS[taken.type])


def _ends(path: Path) -> frozenset[int] | None:
    """Return the tokens that end a text; None where a generation config asks for more than greedy search, or is missing."""
    if not path.is_file():
        return None
    held = intake.parsed(intake.text_of(path), str(path))
    ends = held.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
    more = any(value not in (None, False) for name, value in held.items() if name not in WITHOUT_EFFECT)
    if more or held.get("use_cache") is False or any(type(end) is not int for end in ends):
        return None
    return frozenset(ends)


def _plain(path: Path) -> bool:
    """Whether a tokenizer's config leaves all that is done to a text to tokenizer.json."""
    if not path.is_file():
        return False
    held = intake.parsed(intake.text_of(path), str(path))
    known = any(held.get("tokenizer_class") == name for name in TOKENIZERS)  # whatever is said there: it may be a list
    return known and not held.get("clean_up_tokenization_spaces") and not held.get("auto_map")


def _tokenizer(path: Path) -> Any | None:
    """Return the tokenizer of a file; None where it cannot be read, which transformers tells in words."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # the library has one class for all errors, and that is Exception itself
        return None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
