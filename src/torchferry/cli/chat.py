"""`torchferry chat`: a conversation with an exported model in the terminal, or line by line through a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

from torchferry.cli.generate import there_is
from torchferry.escape import spoken

ASK, ANSWER = "you: ", "model: "


def run(directory: Path, *, max_new_tokens: int = 60, sample: bool = True, seed: int | None = None, threads: int = 0) -> int:
    """Answer each line of stdin on stdout until it ends (Ctrl-D), and return the exit code. Ctrl-C stops an answer."""
    there_is(directory)
    import torch

    from torchferry.errors import FeedError
    from torchferry.runtime import configs, tokens
    from torchferry.runtime.chat import Chat
    from torchferry.runtime.generation import CausalLM

    model = CausalLM.from_pretrained(directory, threads=threads)
    chat = Chat(model, tokens.load(directory), max_new_tokens=max_new_tokens, do_sample=sample)
    if seed is not None:
        torch.manual_seed(seed)
    at_terminal = sys.stdin.isatty()
    while (words := _line(at_terminal)) is not None:
        if not words:
            continue
        if at_terminal:
            _show(ANSWER)
        try:
            with configs.generating(directory):
                chat.say(words, _show)
        except FeedError as error:  # too long for the model: the conversation itself can go on
            chat.turns.pop()
            print(error, file=sys.stderr)
        except KeyboardInterrupt:  # Ctrl-C stops the answer, which is forgotten with its question; at the prompt it ends the chat
            if not at_terminal:
                raise
            chat.turns.pop()
        _show("\n")
    return 0


def _line(at_terminal: bool) -> str | None:
    try:
        return input(ASK if at_terminal else "").strip()
    except EOFError:
        if at_terminal:
            _show("\n")  # Ctrl-D ends no line
        return None
    except KeyboardInterrupt:
        _show("\n")  # nor does Ctrl-C
        raise


def _show(piece: str) -> None:
    sys.stdout.write(spoken(piece))
    sys.stdout.flush()
