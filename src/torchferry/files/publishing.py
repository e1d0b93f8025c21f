"""Finished files put into their places: at any instant, and after a loss of power, a graph has the weights that it was made with.

Weights go first, under a name of their own that their content decides; then the graph that names them is renamed over the old
one; what no graph in the folder names any more is removed last.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from torchferry.files.door import check_writable, in_words, landing, put, sync, sync_folder, write
from torchferry.files.journal import SAVED, Note, note
from torchferry.files.leases import lease, workspace
from torchferry.files.locks import turn
from torchferry.files.protobuf import TooManyFields
from torchferry.files.weights import MOST, is_ours, name_by_content, weights_named


def publish(source: Path, destination: Path) -> None:
    """Put a finished file, and the weights beside it, in the place of the old ones; the names of both files are the same."""
    target, home = landing(destination), landing(destination.parent)
    with in_words(destination), lease(target.parent) as root, turn(target.parent):
        name_by_content(source)
        weights, before = _own_weights(source, source.name), _own_weights(target, source.name)
        if weights or before:
            note(root, Note((*weights, *before), (target.name,), str(home)))
        for name in weights:
            put(source.parent / name, target.parent / name, like=target)
            if home != target.parent and not os.path.lexists(home / name):
                os.symlink(target.parent / name, home / name)  # runtimes look for weights beside the path that they open
                sync_folder(home)
        put(source, destination)


def publish_directory(folder: Path, place: Path, last: str = "") -> None:
    """Put all files of a folder into a directory. A new one appears whole, by one rename.

    In one that is there the files are replaced one by one, graphs after others and that named `last` at the end. Where that
    fails, the old ones are brought back; where the run dies, by the next that looks (`sweep`).
    """
    target = landing(place)
    with in_words(place):
        graphs = sorted(folder.glob("*.onnx"))
        for graph in graphs:
            name_by_content(graph)
        if not target.exists():
            _put_whole(folder, target)
            return
        weights = {name: graph.name for graph in graphs for name in _own_weights(graph, graph.name)}
        files = [p for p in folder.iterdir() if p.is_file() and p.name not in weights]
        files.sort(key=lambda p: (p.name == last, p in graphs, p.name))
        with lease(target) as root, turn(target):
            before = [name for graph in graphs for name in _own_weights(target / graph.name, graph.name)]
            told = Note((*weights, *before))
            note(root, told)
            for name, graph_name in weights.items():
                put(folder / name, target / name, like=target / graph_name)
            _save([target / p.name for p in files], root / SAVED)
            note(root, replace(told, replaced={p.name: p.stat().st_ino for p in files}))
            for path in files:
                put(path, target / path.name)
            note(root, told)


def move_files(folder: Path, place: Path) -> None:
    """Move all files from one workspace to another."""
    for path in [p for p in folder.iterdir() if p.is_file()]:
        os.replace(path, place / path.name)


def move_model(source: Path, destination: Path) -> None:
    """Move a model of the same name from one workspace to another, with its weights."""
    for name in weights_named(source):
        os.replace(source.parent / name, destination.parent / name)
    os.replace(source, destination)


def link_model(path: Path, folder: Path) -> Path:
    """Let a folder hold a finished file too, with its weights, without writing them anew where the disk can; return it there."""
    for name in (path.name, *weights_named(path)):
        _link(path.parent / name, folder / name)
    return folder / path.name


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    check_writable(path)
    with in_words(path), workspace(near=path) as folder:
        write(folder / "text", text.encode())
        put(folder / "text", path)


def size_on_disk(path: Path) -> int:
    """Return the bytes of a model and of the weights beside it."""
    try:
        named = weights_named(path, MOST)
    except TooManyFields:
        named = ()
    below = [path.parent / name for name in named if not os.path.isabs(name) and ".." not in Path(name).parts]
    return path.stat().st_size + sum(p.stat().st_size for p in below if os.path.isfile(p))  # a file may name anything


def _own_weights(graph: Path, called: str) -> list[str]:
    """Return the weights beside a graph that were written for it, and by us, when it was `called` so."""
    try:
        return [name for name in weights_named(graph, MOST) if is_ours(name, called)]
    except TooManyFields:
        return []


def _put_whole(folder: Path, target: Path) -> None:
    whole = folder / "whole"
    whole.mkdir()
    move_files(folder, whole)
    for path in whole.iterdir():
        sync(path)
    sync_folder(whole)
    os.rename(whole, target)
    sync_folder(target.parent)


def _save(files: list[Path], folder: Path) -> None:
    """Keep the files that are about to be replaced."""
    folder.mkdir()
    for path in files:
        if path.exists():
            _link(landing(path), folder / path.name)
            sync(folder / path.name)
    sync_folder(folder)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one that knows no links
        shutil.copy2(source, target)
