"""What a transformers model needs to become graphs that generate: tasks, each prepared, exported, and verified as a whole."""

from __future__ import annotations

from typing import Any

from torchferry.errors import UsageError, did_you_mean
from torchferry.tasks.prepared import Prepared

__all__ = ["TASKS", "Prepared", "export_directory", "generates", "prepare", "task_of", "verify_directory"]

TASKS = ("text-generation", "text2text-generation", "automatic-speech-recognition")


def task_of(model: Any) -> str | None:
    """Return the task that a model's config speaks of, or None where a plain export is the thing to do."""
    if not hasattr(model, "config") or not callable(getattr(model, "can_generate", None)) or not model.can_generate():
        return None
    if not getattr(model.config, "is_encoder_decoder", False):
        return "text-generation"
    return "text2text-generation" if model.main_input_name == "input_ids" else "automatic-speech-recognition"


def prepare(model: Any, task: str | None = None, *, position_ids: bool = False) -> Prepared | None:
    """Return the model made ready for a task; None where no task is asked for and none fits.

    position_ids: let a decoder's graph take them as an input, where it would count them by the mask.
    """
    chosen = task or task_of(model)
    if chosen is None:
        return None
    if chosen not in TASKS:
        raise UsageError(f"no task is called `{chosen}`{did_you_mean(chosen, TASKS)}; there are {', '.join(TASKS)}")
    if chosen == "text-generation":
        from torchferry.tasks import causal_lm

        return causal_lm.prepare(model, position_ids=position_ids)
    from torchferry.tasks import encoder_decoder

    return encoder_decoder.prepare(model, chosen)


def export_directory(*args: Any, **kwargs: Any) -> Any:
    """Export a model with `generate` into a directory; see `torchferry.tasks.directory.export_directory`."""
    from torchferry.tasks.directory import export_directory as function

    return function(*args, **kwargs)


def generates(model: Any, path: Any) -> bool:
    """Say whether a path is what the export of a task writes; see `torchferry.tasks.verification.is_one`."""
    from torchferry.tasks.verification import is_one

    return is_one(model, path)


def verify_directory(*args: Any, **kwargs: Any) -> Any:
    """Compare such a directory with its model; see `torchferry.tasks.verification.verify_directory`."""
    from torchferry.tasks.verification import verify_directory as function

    return function(*args, **kwargs)
