"""A directory that generates: graphs, config, generation config and tokenizer; written only when all of it was verified."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING

from torchferry import eager, intake, releases
from torchferry.edits.translate import LastLogits, NoWholeSlices, WholeAttention, WholeNorms, WholeProducts, WholeRotations
from torchferry.errors import ExportError, UsageError
from torchferry.execution import allowed, exported
from torchferry.files import check_writable, in_words, link_model, publish_directory, workspace
from torchferry.progress import Event, Listener, listening, log, tell
from torchferry.records import Budget, Case, Edit, Generation, Translated
from torchferry.records.documents import SessionSettings
from torchferry.result import Result
from torchferry.runtime import tokens
from torchferry.runtime.directories import RECORD
from torchferry.tasks import prepare
from torchferry.tasks.experts import experts_in_form, form_of_experts
from torchferry.tasks.prepared import Prepared

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
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    opset_version: int | None = None,
    target: str | None = None,
    repair: str = "safe",
    check: bool = True,
    edits: Sequence[Edit] = (),
    budget: Budget | None = None,
    progress: Listener | None = None,
) -> Result:
    """Export a transformers model with `generate` into a directory, and verify that it writes the same text.

    task: found from the model's config when not given.
    tokenizer: a tokenizer, or the directory of one, to be saved beside the graphs.
    position_ids: let a decoder's graph take them as an input, where it would count them by the mask.
    precision: "int8" or "int4" for a decoder with its weights in fewer bits, made from the verified one. What that changes is
    measured beside the exact model, and written into the result's notes, the log and `torchferry.json`.
    The others are those of `torchferry.export`; they hold for each graph.

    Returns the result of the last graph (of the first that failed, where one did), its trials those of the graph and of the
    texts written. Nothing is put into `directory` unless all is verified.
    """
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise UsageError(f"`{place}` is a file; a model that generates is exported to a directory")
    with in_words(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    check_writable(place / "model.onnx" if place.exists() else place)
    tokenizer = _own_tokenizer(tokenizer)  # before the long work, so that one that cannot be read costs no time
    with listening(progress), in_eval(model), workspace(near=place) as folder:
        prepared = prepare(model, task, position_ids=position_ids)
        if prepared is None:
            raise UsageError(
                f"{type(model).__name__} does not generate, so there is no task to export it for; name a file to write instead"
            )
        if precision is not None and prepared.task != "text-generation":
            raise UsageError(
                f"precision={precision!r} is for text-generation; {type(model).__name__} is exported for {prepared.task}"
            )
        passes = (*_fewer_nodes(opset_version, target), *edits)
        budget = budget or Budget()
        parts = [
            replace(p, ranges={**p.ranges, **(ranges or {})}, opset=opset_version, target=target, budget=budget, edits=passes)
            for p in prepared.parts
        ]
        results: list[Result] = []  # of the graphs so far
        last = replace(parts[-1], generation=generation(prepared, results, tokenizer, precision))
        with experts_in_form(model):
            for job in (*parts[:-1], last):
                tell(Event("tick", "inputs", job.file_name))
                results.append(exported(job, folder / job.file_name, allowed(repair), progress))
                if not results[-1].ok:
                    break
        if results[-1].ok:
            publish_directory(folder, place, last=RECORD)
            return replace(results[-1], path=place / last.file_name)
    if check:
        raise ExportError(results[-1])
    return results[-1]


def _fewer_nodes(opset: int | None, target: str | None) -> tuple[Edit, ...]:
    """Return the passes that make a graph of fewer nodes, of those that the asked for opset or target has the operators for."""
    newest = opset or releases.parse(target).opset
    return (*FEWER_NODES, *(FROM_23 if newest >= 23 else ()))


def generation(
    prepared: Prepared, before: Sequence[Result] = (), tokenizer: Any = None, precision: str | None = None
) -> Generation:
    """Return what the last graph of a directory is asked beyond its own trials; `before` are the results of the others by then.

    Graphs are made of a model whose experts are dense; what they write is compared with the model as it is now.
    """
    said = tokens.ready(tokenizer, left=prepared.task == "text-generation") if tokenizer is not None else ()
    for words in said:
        log.info(words)
    own = experts_in_form(prepared.model, form_of_experts(prepared.model))
    quantise = own(partial(_quantised, prepared, precision)) if precision is not None else None
    return Generation(partial(_settled, prepared, before, tokenizer), own(prepared.write), own(prepared.pads), quantise, said)


def _settled(prepared: Prepared, before: Sequence[Result], tokenizer: Any, case: Case) -> Path:
    """Return the directory of a case: its graph, those before it, and what the runtime reads beside them."""
    assert case.job.workspace is not None
    directory = case.job.workspace / "directory"
    directory.mkdir()
    settings: dict[str, Any] = {}
    for made in (*(result.history.best for result in before), case):
        settings |= made.answer(Translated).settings
    for graph in (*(result.path for result in before), case.file):
        assert graph is not None  # all of them were verified
        link_model(graph, directory)
    model = prepared.model
    _write_config(model, directory / "config.json")
    if getattr(model, "generation_config", None) is not None:
        model.generation_config.save_pretrained(directory)
    if tokenizer is not None:
        tokenizer.save_pretrained(directory)
    kept = {f.name: settings[f.name] for f in fields(SessionSettings) if f.name in settings}
    record = {"task": prepared.task, "longest": prepared.longest, "settings": kept}
    (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return directory


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
        held = intake.parsed(intake.text_of(path), str(path))
        path.write_text(json.dumps(general | held, indent=2) + "\n", encoding="utf-8")


def _own_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer that may be changed: a copy, or the one of a directory; None where there is none."""
    if not isinstance(tokenizer, str | Path):
        return copy.deepcopy(tokenizer)
    if tokens.present(Path(tokenizer)):
        return tokens.read(Path(tokenizer))
    log.warning("`%s` has no tokenizer; the exported directory has none either", tokenizer)
    return None


def _quantised(prepared: Prepared, precision: str, directory: Path) -> tuple[str, str]:
    """Put weights of fewer bits in the place of the exact ones; return their precision, and what that changes in words."""
    from torchferry.tasks.fewer_bits import put_in_fewer_bits

    measured = put_in_fewer_bits(prepared, directory, precision)
    log.info("%s", measured)
    record = intake.parsed(intake.text_of(directory / RECORD), RECORD) | {"quantised": asdict(measured)}
    (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return measured.precision, str(measured)


@contextmanager
def in_eval(model: Any) -> Iterator[None]:
    """Put the model into the mode that it generates in, for as long as the block runs."""
    with eager.untouched_by_runs(model):
        model.eval()
        # torch takes another attention kernel where a learned bias wants gradients, with another layout of what it gives:
        # a graph captured with the one does not decompose with the other
        model.requires_grad_(False)
        yield
