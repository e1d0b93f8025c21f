"""A directory that generates, compared anew with its model: each graph as the export compared it, then the texts it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from torchferry import intake
from torchferry.errors import FileRefused, UsageError, VerifyError
from torchferry.execution import compared
from torchferry.progress import Listener
from torchferry.records import Budget, Call, Job
from torchferry.records.documents import DirectoryRecord
from torchferry.result import Result
from torchferry.runtime.directories import RECORD
from torchferry.tasks import TASKS, prepare
from torchferry.tasks.directory import generation, in_eval
from torchferry.tasks.experts import experts_in_form
from torchferry.tasks.prepared import Prepared

PAST = "past_key_values."


def is_one(model: Any, path: Path) -> bool:
    """Say whether a path is what the export of a task writes for a model that generates: a directory, or a graph with a cache."""
    if not callable(getattr(model, "generate", None)):
        return False
    return path.is_dir() or any(name.startswith(PAST) for name in _inputs(path))


def verify_directory(
    model: Any,
    path: str | Path,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Sequence[Call] = (),
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    target: str | None = None,
    check: bool = True,
    budget: Budget | None = None,
    progress: Listener | None = None,
) -> Result:
    """Return how the graphs, and the texts that are written with them, compare with the model.

    path: the directory, or a graph in it. args, kwargs, examples: calls of the model itself that must hold too.
    A graph counts positions by the mask, as `generate` does; so the model is called as `generate` calls it.
    """
    place = Path(path) if Path(path).is_dir() else Path(path).parent
    record = _record(place)
    with in_eval(model):
        prepared = _prepared(model, Path(path), place, record)
        given = _calls(prepared, args, kwargs or {}, examples)
        rounded = record is not None and record.quantised is not None  # whose texts are others
        writes = not rounded and (place / "config.json").is_file()
        asked = replace(generation(prepared), settle=lambda case: place) if writes else None
        with experts_in_form(model):
            for part in prepared.parts:
                last = part is prepared.parts[-1]
                job = Job(
                    part.model,
                    part.args,
                    examples=(*part.examples, *(given if last else ())),
                    ranges={**part.ranges, **(ranges or {})},
                    target=target,
                    onnx=place / part.file_name,
                    budget=budget or Budget(),
                    generation=asked if last else None,
                )
                result = compared(job, place / part.file_name, progress)
                if not result.ok:
                    break
    if check and not result.ok:
        raise VerifyError(result)
    return result


def _prepared(model: Any, path: Path, place: Path, record: DirectoryRecord | None) -> Prepared:
    fed = "position_ids" in _inputs(path if path.is_file() else place / "model.onnx")
    prepared = prepare(model, record.task if record is not None else None, position_ids=fed)
    if prepared is None:
        raise UsageError(f"{type(model).__name__} does not generate; name the file to compare it with, and not the directory")
    missing = [part.file_name for part in prepared.parts if not (place / part.file_name).is_file()]
    if missing and not (path.is_file() and len(prepared.parts) == 1):
        raise UsageError(f"`{place}` has no {' and no '.join(f'`{m}`' for m in missing)}, which {type(model).__name__} needs")
    if path.is_file() and len(prepared.parts) == 1:  # under whatever name
        return replace(prepared, parts=(replace(prepared.parts[0], file_name=path.name),))
    return prepared


def _calls(prepared: Prepared, args: Any, kwargs: Mapping[str, Any], examples: Sequence[Call]) -> tuple[Call, ...]:
    """Return the user's own calls as calls of the last graph."""
    own = [*([(args, kwargs)] if len(args if isinstance(args, tuple) else (args,)) or kwargs else []), *examples]
    if own and prepared.call is None:
        raise UsageError(f"a {prepared.task} directory is compared on calls of its own making: leave the example out")
    return tuple(prepared.call(*call) for call in own) if prepared.call is not None else ()


def _inputs(path: Path) -> tuple[str, ...]:
    """Return the names of a file's inputs; none where it is no model."""
    try:
        return tuple(value.name for value in onnx.load(str(path), load_external_data=False).graph.input)
    except Exception:  # protobuf raises its own kinds for anything that is not a model
        return ()


def _record(place: Path) -> DirectoryRecord | None:
    """Return what the export wrote of the directory; None where another tool wrote it."""
    file = place / RECORD
    if not file.is_file():
        return None
    held = intake.read(DirectoryRecord, file)
    if held.task not in TASKS:
        raise FileRefused(str(file), f"it names no task; there are {', '.join(TASKS)}")
    return held
