"""The one door through which files are written: whole or not at all, synced, and never in the place of what is no file."""

from __future__ import annotations

from torchferry.files.door import check_writable, in_words, is_lack_of_room, is_path, landing, why
from torchferry.files.journal import PREFIX, under_way
from torchferry.files.leases import sweep, workspace
from torchferry.files.publishing import (
    link_model,
    move_files,
    move_model,
    publish,
    publish_directory,
    size_on_disk,
    write_text,
)
from torchferry.files.weights import data_name, digest_of, name_by_content, weights_named

__all__ = [
    "PREFIX",
    "check_writable",
    "data_name",
    "digest_of",
    "in_words",
    "is_lack_of_room",
    "is_path",
    "landing",
    "link_model",
    "move_files",
    "move_model",
    "name_by_content",
    "publish",
    "publish_directory",
    "size_on_disk",
    "sweep",
    "under_way",
    "weights_named",
    "why",
    "workspace",
    "write_text",
]
