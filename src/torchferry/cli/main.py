"""The `torchferry` command: runs a command and answers with an exit code.

- 0: verified, or nothing to complain of
- 1: finished, but the file is not the model
- 2: the command makes no sense as written
- 3: could not be loaded or converted
- 4: a run failed
- 130: stopped with Ctrl-C
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence

from torchferry.cli import supervise
from torchferry.cli.screen import Screen
from torchferry.errors import MissingDependency, TorchferryError, UsageError
from torchferry.extras import missing
from torchferry.files import is_lack_of_room, why
from torchferry.memory import ran_out

USAGE, BROKEN, STOPPED = 2, 3, 130
TOO_LITTLE_MEMORY = "there is not enough memory to work with; see `ulimit -v`, the container's limit, and what else is running"

_LAST_WORDS = f"error: {TOO_LITTLE_MEMORY}\n".encode()  # made while there is memory for it


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of the command in `argv` (default: the process's own)."""
    try:
        return supervise.over(_main(argv))
    except (MemoryError, SystemError):  # the second is how Python fails where it cannot even make the first
        os.write(2, _LAST_WORDS)
        supervise.over(BROKEN)
        os._exit(BROKEN)  # to end in an orderly way takes memory too; what is left behind is swept by the next command


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen(verbose=sum(word == "--verbose" or re.fullmatch("-v+", word) is not None for word in words))
    ask = None
    try:
        if (ask := supervise.task()) is not None:  # the parent has read the words
            from torchferry.cli.work import carry_out

            return carry_out(ask)
        from torchferry.cli.app import app

        app(words, prog_name="torchferry", obj=words)
    except SystemExit as ended:  # how typer ends every command; it has shown its own usage errors by then
        return ended.code if isinstance(ended.code, int) else 0
    except (UsageError, MissingDependency) as error:
        return _say(screen, error, USAGE)
    except TorchferryError as error:
        return _say(screen, TOO_LITTLE_MEMORY if ran_out(error) else error, BROKEN)
    except KeyboardInterrupt:
        if ask is None:  # a child leaves that to its parent
            screen.line("stopped")
        return STOPPED
    except Exception as error:
        if isinstance(error, OSError) and is_lack_of_room(error):
            return _say(screen, UsageError(f"cannot write: {why(error)}"), USAGE)
        if ran_out(error):
            return _say(screen, TOO_LITTLE_MEMORY, BROKEN)
        if told := missing(error):
            return _say(screen, told, USAGE)
        # ours, whatever it is: the user gets a sentence and a way to tell us, not 50 lines
        return _internal(screen, error, words)
    return 0


def _say(screen: Screen, error: Exception | str, code: int) -> int:
    if screen.verbose:
        screen.line(traceback.format_exc())
    screen.error(str(error))
    return code


def _internal(screen: Screen, error: Exception, words: Sequence[str]) -> int:
    if screen.verbose:
        screen.line(traceback.format_exc())
    screen.error(f"torchferry itself failed, and not your model: {type(error).__name__}: {error}")
    if not screen.verbose:
        screen.line(f"please report it with the output of: torchferry {shlex.join(words)} -v")
    return BROKEN
