"""A conversation with an exported model: turns in the model's own format, history cut to what it can remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import TextStreamer

from torchferry.deadline import TookTooLong, time_limit
from torchferry.errors import FeedError, FileRefused, UsageError

PATIENCE = 10.0  # seconds; a template that takes longer than a moment never ends


class Chat:
    """Turns of a conversation. A model with a chat template gets that; others DialoGPT's format: each turn ends with EOS."""

    def __init__(self, model: Any, tokenizer: Any, *, max_new_tokens: int = 60, **options: Any) -> None:
        if tokenizer.eos_token_id is None:
            raise UsageError("a chat needs an EOS token between the turns, and the tokenizer has none")
        if model.longest is not None and max_new_tokens + 2 > model.longest:  # the shortest question, and EOS behind it
            raise UsageError(
                f"the model has {model.longest} positions, and {max_new_tokens} kept for each answer leave no room for a question"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.options = options
        self.turns: list[str] = []  # the user's and the model's, one after the other

    def say(self, words: str, heard: Callable[[str], None] = lambda piece: None) -> str:
        """Return the model's answer; `heard` gets it piece by piece as it is written."""
        if not words.strip():
            raise FeedError("nothing was said")
        self.turns.append(words)
        ids = self._history()
        written = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=self.max_new_tokens,
            pad_token_id=self.tokenizer.eos_token_id,
            streamer=_Streamer(self.tokenizer, heard),
            # whatever the model's own settings say: beams are known only at the end, and are not streamed
            **{"num_beams": 1, "return_dict_in_generate": False, **self.options},
        )
        answer = str(self.tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True))
        self.turns.append(answer)
        return answer

    def _history(self) -> torch.Tensor:
        """Return the turns as token ids, the oldest left out while there is no room for them and for the answer."""
        room = None if self.model.longest is None else self.model.longest - self.max_new_tokens
        for start in range(0, len(self.turns), 2):  # a question leaves together with its answer
            ids = self._encoded(self.turns[start:])
            if room is None or ids.shape[1] <= room:
                return ids
        raise FeedError(
            f"what was said is {ids.shape[1]} tokens long and the model has room for {max(0, room or 0)}: "
            f"{self.model.longest} positions, of which {self.max_new_tokens} are kept for the answer"
        )

    def _encoded(self, turns: list[str]) -> torch.Tensor:
        if getattr(self.tokenizer, "chat_template", None):
            said = [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]
            return self._by_template(said)
        ids = [
            token
            for turn in turns
            for token in (*self.tokenizer(turn, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id)
        ]
        return torch.tensor([ids])

    def _by_template(self, said: list[dict[str, str]]) -> torch.Tensor:
        """Return a conversation in the model's own format. Its template is a program, which transformers runs in a sandbox."""
        try:
            with time_limit(PATIENCE, "the chat template"):
                made = self.tokenizer.apply_chat_template(said, add_generation_prompt=True, return_tensors="pt", return_dict=True)
                return made["input_ids"]
        except (Exception, TookTooLong) as error:  # jinja's own kinds, and whatever a value in it raises
            why = f"it does not give this conversation a form: {type(error).__name__}: {error}"
            raise FileRefused("chat_template", why) from error


class _Streamer(TextStreamer):
    """Hands on each piece of the answer as soon as it makes whole words."""

    def __init__(self, tokenizer: Any, heard: Callable[[str], None]) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.heard = heard

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Hand on a piece."""
        self.heard(text)
