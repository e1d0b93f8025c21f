"""`python -m torchferry script.py`: a user's script run as it is, and what it raises explained below its traceback."""

from __future__ import annotations

import runpy
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path

RAISED = 1


def is_script(words: Sequence[str]) -> bool:
    """Whether the words are a script and its arguments, and no command."""
    return bool(words) and words[0].endswith(".py") and Path(words[0]).is_file()


def run(words: Sequence[str]) -> int:
    """Run a script as Python does, and return its exit code; an error is explained where it can be."""
    sys.argv[:] = words
    sys.path[0] = str(Path(words[0]).resolve().parent)
    try:
        runpy.run_path(words[0], run_name="__main__")
    except Exception as error:
        traceback.print_exception(error.with_traceback(_of_the_script(error, words[0])))
        _explain("".join(traceback.format_exception(error)))
        return RAISED
    return 0


def _of_the_script(error: BaseException, script: str) -> types.TracebackType | None:
    """Return the traceback from the script's own first line on."""
    trace = error.__traceback__
    while trace is not None and Path(trace.tb_frame.f_code.co_filename) != Path(script):
        trace = trace.tb_next
    return trace or error.__traceback__


def _explain(text: str) -> None:
    from torchferry.cli.explain import told
    from torchferry.messages import explained

    if found := explained(text):
        print(f"\n{told(found)}", end="", file=sys.stderr)
