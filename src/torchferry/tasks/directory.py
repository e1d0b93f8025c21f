"""A directory that generates: graphs, config, generation config and tokenizer; written only when all of it was verified."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING

from torchferry import api, eager, releases
from torchferry.certificate import seal
from torchferry.edits.translate import LastLogits, NoWholeSlices, WholeAttention, WholeNorms, WholeProducts, WholeRotations
from torchferry.errors import ExportError, UsageError
from torchferry.files import check_writable, move_into_place, workspace
from torchferry.progress import Event, listening, log, tell
from torchferry.records import Case, Edit, Verified, ranges_shown
from torchferry.records.findings import WeightsQuantised
from torchferry.result import Result, size_on_disk
from torchferry.runtime import tokens
from torchferry.runtime.generator import RECORD
from torchferry.tasks import prepare
from torchferry.tasks.experts import dense_experts
from torchferry.tasks.graph_parts import GraphPart, Prepared

# a token costs the time of every node: these passes leave half of them or fewer
FEWER_NODES = (NoWholeSlices(), WholeProducts(), LastLogits())
FROM_23 = (WholeNorms(), WholeRotations(), WholeAttention())  # to operators that ONNX has from opset 23


def export_directory(
    model: Any,
    directory: str | Path,
    *,
    task: str | None = None,
    tokenizer: Any = None,
    position_ids: bool = False,
    precision: str | None = None,
    check: bool = True,
    **options: Any,
) -> Result:
    """Export a transformers model with `generate` into a directory, and verify that it writes the same text.

    task: found from the model's config when not given.
    tokenizer: a tokenizer, or the directory of one, to be saved beside the graphs.
    position_ids: let a decoder's graph take them as an input, where it would count them by the mask.
    precision: "int8" or "int4" for a decoder with its weights in fewer bits, made from the verified one. What that changes is
    measured beside the exact model, and written into the result's notes, the log and `torchferry.json`.
    check, options: as in `torchferry.export`; they hold for each graph.

    Returns the result of the last graph (of the first that failed, where one did), its trials those of the graph and of the
    texts written. Nothing is put into `directory` unless all is verified.
    """
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise UsageError(f"`{place}` is a file; a model that generates is exported to a directory")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write `{place}`: {error.strerror}") from error
    check_writable(place / "model.onnx" if place.exists() else place)
    tokenizer = _own_tokenizer(tokenizer)  # before the long work, so that one that cannot be read costs no time
    with listening(options.get("progress")), in_eval(model), workspace(near=place) as folder:
        prepared = prepare(model, task, position_ids=position_ids)
        if prepared is None:
            raise UsageError(
                f"{type(model).__name__} does not generate, so there is no task to export it for; name a file to write instead"
            )
        if precision is not None and prepared.task != "text-generation":
            raise UsageError(
                f"precision={precision!r} is for text-generation; {type(model).__name__} is exported for {prepared.task}"
            )
        with dense_experts(model):
            results = _graphs(prepared, folder, check, options)
        if not results[-1].ok:
            return results[-1]
        _settle(prepared, folder, results)
        result = written(prepared, folder, _with_tokenizer(results[-1], prepared, folder, tokenizer))
        if not result.ok:
            if check:
                raise ExportError(result)
            return replace(result, path=None)
        seal(folder / prepared.parts[-1].file_name, result.history)  # anew: the texts are trials too
        if precision is not None:
            result = _quantised(prepared, folder, precision, result)
        place.mkdir(exist_ok=True)
        _put(folder, place)
    return replace(result, path=place / prepared.parts[-1].file_name)


def _graphs(prepared: Prepared, folder: Path, check: bool, options: Mapping[str, Any]) -> list[Result]:
    """Return the result of each graph, up to the first that could not be had."""
    results = []
    for part in prepared.parts:
        tell(Event("tick", "inputs", part.file_name))
        results.append(_graph(part, folder, check, options))
        if not results[-1].ok:
            break
    return results


def _graph(part: GraphPart, folder: Path, check: bool, options: Mapping[str, Any]) -> Result:
    return api.export(
        part.model,
        part.args,
        folder / part.file_name,
        input_names=part.input_names,
        output_names=part.output_names,
        dynamic_shapes=part.dynamic_shapes,
        ranges={**part.ranges, **(options.get("ranges") or {})},
        examples=[*part.examples, *(options.get("examples") or ())],
        check=check,
        edits=(*_fewer_nodes(options), *(options.get("edits") or ())),
        **{name: value for name, value in options.items() if name not in ("ranges", "examples", "edits")},
    )


def _fewer_nodes(options: Mapping[str, Any]) -> tuple[Edit, ...]:
    """Return the passes that make a graph of fewer nodes, of those that the asked for opset or target has the operators for."""
    newest = options.get("opset_version") or releases.parse(options.get("target")).opset
    return (*FEWER_NODES, *(FROM_23 if newest >= 23 else ()))


def _settle(prepared: Prepared, folder: Path, results: list[Result]) -> None:
    """Write what the runtime reads beside the graphs."""
    model = prepared.model
    _write_config(model, folder / "config.json")
    if getattr(model, "generation_config", None) is not None:
        model.generation_config.save_pretrained(folder)
    settings: dict[str, Any] = {}
    for result in results:
        settings |= result.history.best.value("translate").settings
    known = {"level", "disabled", "config"}  # what `ort.session` can be told
    record = {"task": prepared.task, "longest": prepared.longest, "settings": {k: v for k, v in settings.items() if k in known}}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _write_config(model: Any, path: Path) -> None:
    """Write the model's config, naming its class as save_pretrained would, but no code: the graphs need none.

    That of a class which transformers does not know is read without the class: all values are written then, and under the
    names that transformers asks for beside the class's own.
    """
    config = type(model.config).from_dict({k: v for k, v in model.config.to_dict().items() if k != "auto_map"})
    config.architectures = [type(model).__name__]
    known = config.model_type in CONFIG_MAPPING
    config.to_json_file(path, use_diff=known)
    if not known:
        general = {name: getattr(config, name) for name in config.attribute_map}
        held = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(general | held, indent=2) + "\n", encoding="utf-8")


def _own_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer that may be changed: a copy, or the one of a directory; None where there is none."""
    if not isinstance(tokenizer, str | Path):
        return copy.deepcopy(tokenizer)
    if tokens.present(Path(tokenizer)):
        return tokens.read(Path(tokenizer))
    log.warning("`%s` has no tokenizer; the exported directory has none either", tokenizer)
    return None


def _with_tokenizer(result: Result, prepared: Prepared, folder: Path, tokenizer: Any) -> Result:
    """Put the tokenizer beside the graphs; return the result with what had to be set among its notes."""
    if tokenizer is None:
        return result
    said = tokens.ready(tokenizer, left=prepared.task == "text-generation")
    for words in said:
        log.info(words)
    tokenizer.save_pretrained(folder)
    return noted(result, *said)


def noted(result: Result, *words: str) -> Result:
    step = result.history.best.step("verify")
    assert step is not None
    return _with_verify(result, notes=(*step.notes, *words))


def written(prepared: Prepared, folder: Path, result: Result) -> Result:
    """Return the result with the texts that the directory writes among its trials, and what padding does to its answers."""
    tell(Event("begin", "verify"))
    verified: Verified = result.history.best.value("verify")
    texts = prepared.write(folder, verified.tolerance)
    took = sum(trial.seconds for trial in texts)
    tell(Event("end", "verify", f"{len(texts)} texts written", took, ok=all(t.outcome == "agree" for t in texts)))
    trials = (*verified.trials, *texts)
    result = _with_verify(result, value=replace(verified, trials=trials, ranges=ranges_shown(trials)))
    padding = prepared.pads(folder, verified.tolerance)
    return result if padding is None else noted(result, padding.words())


def _quantised(prepared: Prepared, folder: Path, precision: str, result: Result) -> Result:
    """Put weights of fewer bits in the place of the exact ones; return the result with what that changes among its notes."""
    from torchferry.tasks.fewer_bits import put_in_fewer_bits

    path = folder / prepared.parts[-1].file_name
    measured = put_in_fewer_bits(prepared, folder, precision)
    log.info("%s", measured)
    tell(Event("tick", "verify", str(measured)))
    record = json.loads((folder / RECORD).read_text(encoding="utf-8")) | {"quantised": asdict(measured)}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    step = result.history.best.step("verify")
    assert step is not None
    found = _with_verify(result, findings=(*step.findings, WeightsQuantised(measured.precision)))
    told = noted(found, f"the trials are of the exact file, before its weights were quantised; {measured}")
    return replace(told, bytes=size_on_disk(path))


def _with_verify(result: Result, **changes: Any) -> Result:
    """Return the result with something changed in what the verify stage answered."""
    case: Case = result.history.best
    best = replace(case, steps=tuple(replace(s, **changes) if s.stage == "verify" else s for s in case.steps))
    cases = tuple(best if c is case else c for c in result.history.cases)
    return replace(result, history=replace(result.history, best=best, cases=cases))


@contextmanager
def in_eval(model: Any) -> Iterator[None]:
    """Put the model into the mode that it generates in, for as long as the block runs."""
    with eager.untouched(model):
        model.eval()
        # torch takes another attention kernel where a learned bias wants gradients, with another layout of what it gives:
        # a graph captured with the one does not decompose with the other
        model.requires_grad_(False)
        yield


def _put(folder: Path, place: Path) -> None:
    """Move all files into place, graphs with their weights last: until then the old ones still fit each other."""
    graphs = sorted(folder.glob("*.onnx"))
    for path in sorted(folder.iterdir()):
        if path.is_file() and path not in graphs and path.suffix != ".data":
            shutil.move(path, place / path.name)
    for graph in graphs:
        move_into_place(graph, place / graph.name)
