"""The files that hold a graph's weights: which of them it names, and what those that we write are called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchferry.files.digest import digest
from torchferry.files.protobuf import Buffer, TooManyFields, fields, mapped

MOST = 4_000_000  # fields of a graph that is only glanced at: some seconds; a model of 100,000 nodes has half of them
LONGEST = 240  # bytes of a name: a file may have 255, of which onnx_ir takes ten for the one that it writes first
UNFINISHED = "0" * 12  # in the place of the digest, until the weights are written
ENDING = ".{}.data"
OURS = re.compile(r"(.*)\.([0-9a-f]{12})\.data", re.DOTALL)
# which fields of a message may lead to the place of a tensor
INNER = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}


def data_name(graph: str, digest: str = UNFINISHED) -> str:
    """Return what the file with a graph's weights is called, cut so that it is no longer than a name may be."""
    return _cut(graph, LONGEST - len(ENDING.format(digest))) + ENDING.format(digest)


def is_ours(name: str, graph: str) -> bool:
    """Whether a file of weights has a name that we gave it, and belongs to the graph of this name."""
    return (found := OURS.fullmatch(name)) is not None and name == data_name(graph, found[2])


def name_by_content(graph: Path) -> None:
    """Give the finished weights of a graph in a workspace a name of their own, and tell the graph, which has room for it."""
    unfinished = data_name(graph.name)
    if unfinished not in weights_named(graph):
        return
    name = data_name(graph.name, digest_of(graph.parent / unfinished)[:12])
    with mapped(graph) as held:
        places = [a for a, b in _locations(held, 0, len(held), "model") if held[a:b] == unfinished.encode()]
    with graph.open("r+b") as file:
        for place in places:
            file.seek(place)
            file.write(name.encode())
    os.replace(graph.parent / unfinished, graph.parent / name)


def digest_of(path: Path) -> str:
    """Return what tells a file from any other; of a graph whose weights lie beside it, their digest is in their name."""
    with path.open("rb") as file:
        return digest(file, "sha256")


def weights_named(graph: Path, most: int | None = None) -> tuple[str, ...]:
    """Return the files that a graph keeps weights in, as it names them; nothing for what is no model.

    most: how many fields to look at, in a file that is not ours; raises TooManyFields where that is not enough.
    """
    try:
        return _named(graph, most)
    except TooManyFields:
        raise
    except (OSError, ValueError, IndexError, RecursionError):  # not there, empty, cut short, or something else
        return ()


def still_named(name: str, folder: Path, graphs: Iterable[str]) -> bool:
    """Whether one of these graphs, or another in the folder, keeps weights in the file of this name, or may for all we know."""
    near = {p.name for p in folder.iterdir() if p.suffix.lower() == ".onnx"}
    return any(_may_name(folder / graph, name) for graph in near.union(graphs))


def _may_name(graph: Path, name: str) -> bool:
    try:
        return name in _named(graph, MOST)
    except (FileNotFoundError, ValueError, IndexError) as error:  # not there, or no model
        return isinstance(error, TooManyFields)
    except (OSError, RecursionError):
        return True


def _named(graph: Path, most: int | None) -> tuple[str, ...]:
    with mapped(graph) as data:
        found = _locations(data, 0, len(data), "model", None if most is None else [most])
        return tuple(dict.fromkeys(data[a:b].decode("utf-8", "replace") for a, b in found))


def _locations(data: Buffer, start: int, stop: int, kind: str, left: list[int] | None = None) -> Iterator[tuple[int, int]]:
    """Yield where each place of weights is written, from its first byte to behind its last."""
    for field, first, last in fields(data, start, stop, left):
        inner = INNER[kind].get(field)
        if inner == "entry":
            texts = {number: (a, b) for number, a, b in fields(data, first, last, left)}
            key, value = texts.get(1, (0, 0)), texts.get(2)
            if data[slice(*key)] == b"location" and value is not None:
                yield value
        elif inner is not None:
            yield from _locations(data, first, last, inner, left)


def _cut(text: str, length: int) -> str:
    """Return the beginning of a text, in so many bytes; a model's strings are UTF-8, a file's name need not be."""
    return os.fsencode(text)[:length].decode("utf-8", "ignore")
