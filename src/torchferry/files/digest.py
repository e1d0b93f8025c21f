"""The digest of an open file, read piece by piece: weights need not fit into memory."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

PIECE = 1 << 20  # bytes


def digest(file: BinaryIO, kind: str) -> str:
    """Return the digest of what is left of a file, in hexadecimal."""
    found = hashlib.new(kind)
    while piece := file.read(PIECE):
        found.update(piece)
    return found.hexdigest()
