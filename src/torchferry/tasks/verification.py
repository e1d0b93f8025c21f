"""A directory that generates, compared anew with its model: each graph as the export compared it, then the texts it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from torchferry import api
from torchferry.errors import UsageError, VerifyError
from torchferry.progress import listening
from torchferry.records import Call
from torchferry.result import Result
from torchferry.runtime.generator import RECORD
from torchferry.tasks import TASKS, prepare
from torchferry.tasks.directory import in_eval, noted, written
from torchferry.tasks.experts import dense_experts
from torchferry.tasks.graph_parts import GraphPart, Prepared

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
    check: bool = True,
    **options: Any,
) -> Result:
    """Return how the graphs, and the texts that are written with them, compare with the model.

    path: the directory, or a graph in it. args, kwargs, examples: calls of the model itself that must hold too.
    A graph counts positions by the mask, as `generate` does; so the model is called as `generate` calls it.
    """
    place = Path(path) if Path(path).is_dir() else Path(path).parent
    record = _record(place)
    with listening(options.get("progress")), in_eval(model):
        prepared = _prepared(model, Path(path), place, record)
        result = _graphs(prepared, place, _calls(prepared, args, kwargs or {}, examples), options)
        if "quantised" in record and result.history.best.step("verify") is not None:
            result = noted(result, f"its weights are quantised: near the model, not equal to it; {RECORD} has what was measured")
        elif result.ok and (place / "config.json").is_file():
            result = written(prepared, place, result)
    if check and not result.ok:
        raise VerifyError(result)
    return result


def _prepared(model: Any, path: Path, place: Path, record: Mapping[str, Any]) -> Prepared:
    fed = "position_ids" in _inputs(path if path.is_file() else place / "model.onnx")
    prepared = prepare(model, record.get("task"), position_ids=fed)
    if prepared is None:
        raise UsageError(f"{type(model).__name__} does not generate; name the file to compare it with, and not the directory")
    missing = [part.file_name for part in prepared.parts if not (place / part.file_name).is_file()]
    if missing and not (path.is_file() and len(prepared.parts) == 1):
        raise UsageError(f"`{place}` has no {' and no '.join(f'`{m}`' for m in missing)}, which {type(model).__name__} needs")
    if path.is_file() and len(prepared.parts) == 1:  # under whatever name
        return replace(prepared, parts=(replace(prepared.parts[0], file_name=path.name),))
    return prepared


def _graphs(prepared: Prepared, place: Path, given: tuple[Call, ...], options: Mapping[str, Any]) -> Result:
    """Return the result of the last graph; of the first that differs, where one does."""
    with dense_experts(prepared.model):
        for part in prepared.parts:
            result = _graph(part, place, given if part is prepared.parts[-1] else (), options)
            if not result.ok:
                break
    return result


def _graph(part: GraphPart, place: Path, given: tuple[Call, ...], options: Mapping[str, Any]) -> Result:
    return api.verify(
        part.model,
        place / part.file_name,
        part.args,
        examples=[*part.examples, *given],
        ranges={**part.ranges, **(options.get("ranges") or {})},
        check=False,
        **{name: value for name, value in options.items() if name not in ("ranges", "progress")},
    )


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


def _record(place: Path) -> dict[str, Any]:
    """Return what the export wrote of the directory; nothing where another tool wrote it."""
    file = place / RECORD
    if not file.is_file():
        return {}
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{file}` is not the JSON that it should be: {error}") from error
    if not isinstance(held, dict) or held.get("task") not in TASKS:
        raise UsageError(f"`{file}` names no task; there are {', '.join(TASKS)}")
    return held
