"""Each guard remembers the user's own line, not the line inside torch or a package that happened to compare the sizes."""

from __future__ import annotations

import sys
import traceback
from contextlib import AbstractContextManager
from typing import Any

from torchferry.capture import source_map
from torchferry.foreign.torch_shapes import guards_placed_by, read_by_dynamo
from torchferry.records import Frame


def patch(module: Any) -> AbstractContextManager[None]:
    """Return a context in which the stack of a guard is searched for the user's frame."""
    return guards_placed_by(user_frame)


def user_frame() -> traceback.FrameSummary | None:
    """Return the innermost line of the user's code that is being run, or read by dynamo; of a package's code if none is."""
    live = [Frame(f.f_code.co_filename, line, f.f_code.co_name) for f, line in traceback.walk_stack(sys._getframe(1))]
    read = [Frame(f.filename, f.lineno or 0, f.name) for f in read_by_dynamo()]  # strict: gone through symbolically
    found = source_map.nearest([*source_map.below_us(live[::-1]), *read])
    return traceback.FrameSummary(found.file, found.line, found.function, lookup_line=False) if found else None
