"""The `torchferry` command: runs a command and answers with an exit code.

- 0: verified, or nothing to complain of
- 1: finished, but the file is not the model
- 2: the command makes no sense as written
- 3: could not be loaded or converted
- 4: a run failed
- 130: stopped with Ctrl-C
"""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Sequence

from torchferry.cli import supervise
from torchferry.cli.screen import Screen
from torchferry.errors import MissingDependency, TorchferryError, UsageError

USAGE, BROKEN, STOPPED = 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of the command in `argv` (default: the process's own)."""
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen(verbose="-v" in words or "--verbose" in words)
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
        return _say(screen, error, BROKEN)
    except KeyboardInterrupt:
        if ask is None:  # a child leaves that to its parent
            screen.line("stopped")
        return STOPPED
    except Exception as error:  # ours, whatever it is: the user gets a sentence and a way to tell us, not 50 lines
        return _internal(screen, error, words)
    return 0


def _say(screen: Screen, error: Exception, code: int) -> int:
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
