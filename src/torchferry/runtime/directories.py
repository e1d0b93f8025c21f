"""A directory that an export wrote, opened: is it one, is it whole, what it says of itself, and sessions on its graphs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchferry import intake
from torchferry.errors import UsageError
from torchferry.files import sweep, under_way
from torchferry.foreign import onnxruntime as ort
from torchferry.records.documents import DirectoryRecord
from torchferry.runtime.exact_products import exact_products
from torchferry.runtime.explain import explain
from torchferry.runtime.session import with_words

RECORD = "torchferry.json"  # what the export knew and the graph cannot say: task, longest text, what a session should set


def record(place: Path, graphs: tuple[str, ...]) -> DirectoryRecord:
    """Return what a directory says of itself; UsageError if it has not these graphs, or is in the middle of an export."""
    _refuse_other(place, graphs)
    _refuse_half_replaced(place)
    return intake.read(DirectoryRecord, place / RECORD) if (place / RECORD).is_file() else DirectoryRecord("")


def opened(path: Path, arrange: bool, **settings: Any) -> Any:
    """Return a session on a graph; what onnxruntime raises comes with an explanation."""
    try:
        if (graph := exact_products(path)) is not None:
            return ort.session(graph, data_folder=str(path.parent), **settings)
        return _arranged(path, settings) if arrange else ort.session(path, **settings)
    except Exception as error:  # whatever onnxruntime raises is raised again, explained
        raise with_words(error, explain(path, None)) from error


def _arranged(path: Path, settings: Mapping[str, Any]) -> Any:
    """Return a session on a graph whose weights are laid out so that they are read faster, where that is so."""
    from torchferry.runtime.pointwise import by_convolutions, give_back

    if (graph := by_convolutions(path)) is None:
        return ort.session(path, **settings)
    session = ort.session(graph, data_folder=str(path.parent), **settings)
    give_back()
    return session


def _refuse_other(place: Path, graphs: tuple[str, ...]) -> None:
    """Raise UsageError for a directory that is not one of these, with what it is where that can be told."""
    missing = [name for name in (*graphs, "config.json") if not (place / name).is_file()]
    if not missing:
        return
    words = f"`{place}` has no {' and no '.join(f'`{m}`' for m in missing)}"
    if not place.exists():
        raise UsageError(f"there is no directory `{place}`; make it with `torchferry export hf:MODEL -o {place}/`")
    if place.is_file():
        raise UsageError(f"`{place}` is a file; name the directory that `torchferry export hf:MODEL -o DIRECTORY/` made")
    if (place / "decoder_model.onnx").is_file():
        raise UsageError(f"{words}: it has an encoder and a decoder, which `Seq2SeqLM` and `torchferry generate` take")
    if any(place.glob("*.safetensors")):
        raise UsageError(f"{words}: it was not exported yet; `torchferry export hf:{place} -o OUT/` makes a directory that was")
    raise UsageError(f"{words}; make it with `torchferry export hf:MODEL -o {place}/`")


def _refuse_half_replaced(place: Path) -> None:
    """Bring back what an export that died was about to replace; raise UsageError where files may not fit each other."""
    if under_way(place):
        sweep(place)
        if under_way(place):
            raise UsageError(f"an export into `{place}` is under way, or was broken off; wait for it, or run it again")
