"""What a command leaves behind: the result on stdout, the files that were asked for, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli.screen import console
from torchferry.escape import line
from torchferry.files import write_text
from torchferry.report.unwritten_repairs import unwritten

if TYPE_CHECKING:
    from torchferry.cli.work import Ask
    from torchferry.result import Result

VERIFIED, NOT_EQUIVALENT, NOT_CONVERTED, RUN_FAILED = 0, 1, 3, 4


@contextmanager
def results_apart() -> Iterator[None]:
    """Keep stdout for results: what models and libraries print while the block runs goes to stderr instead."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def deliver(result: Result, ask: Ask) -> int:
    """Write the result as asked, and return the exit code."""
    out = console(sys.stdout)
    if ask.format == "text" and out.is_terminal:
        from torchferry.report import text

        out.print(text.styled(result, width=max(60, min(out.width, 110))))
    else:
        out.out(result.render(ask.format), end="")
    for words in _written(result, ask):
        if not ask.quiet:
            print(line(words), file=sys.stderr)
    _tell_github(result)
    return exit_code(result)


def _written(result: Result, ask: Ask) -> Iterator[str]:
    """Write the files that were asked for beside the result, and yield what to say of each."""
    if ask.report is not None:
        yield f"the report is in {result.report(ask.report)}"
    if ask.patch is not None and result.patch:
        write_text(ask.patch, result.patch)
        yield f"the repairs of your source are in {ask.patch}; apply them with `git apply {ask.patch}`"
    elif ask.patch is not None:
        yield "no repair touched your source, so there is no patch"
    if ask.reproducer is not None and not result.ok:
        made = result.reproducer(ask.reproducer)
        yield (
            f"run `python {made}` to see the difference"
            if made
            else "no trial of the file failed, so there is nothing to reproduce"
        )


def exit_code(result: Result) -> int:
    """Return 0 only for a result that is right; otherwise what kind of not right it is."""
    waiting = unwritten(result.history, result.path)
    if result.ok and not waiting:
        return VERIFIED
    case = result.history.cases[0] if waiting else result.history.best  # the file as it came, not its mended copy
    if case.guessed:
        return NOT_EQUIVALENT
    if case.fault("verify") is not None or case.fault("generate") is not None:
        return RUN_FAILED
    if case.value("verify") is not None:
        return NOT_EQUIVALENT
    checked = case.value("check")
    if result.kind == "check" and checked is not None and checked.reached == 1:  # it opens, and then does not run
        return RUN_FAILED
    return NOT_CONVERTED


def _tell_github(result: Result) -> None:
    """Annotate the lines of a pull request, and add to the job's summary page, where the work runs in GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from torchferry.report import github

    for command in github.commands(result):
        print(command, file=sys.stderr)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as page:
            page.write(result.render("markdown") + "\n")
