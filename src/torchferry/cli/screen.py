"""What the user sees while the work goes on: a line for each stage, a bar for the trials; all of it on stderr.

On a terminal the current stage moves; in a pipe, under CI, or with TERM=dumb each line is printed once, when it is done.
NO_COLOR, FORCE_COLOR, and terminals that know ASCII only, are respected. Results never pass through here: they go to stdout.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from torchferry.escape import visible
from torchferry.progress import Event

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

DOING = {
    "start": "loading torch and onnxruntime",
    "load": "loading the model",
    "inputs": "binding inputs, finding which sizes move",
    "capture": "capturing the model",
    "translate": "translating to ONNX",
    "check": "checking the file",
    "verify": "comparing with the eager model",
    "generate": "writing texts beside the eager model",
}


def console(stream: IO[str]) -> Console:
    """Return a rich console on a stream that writes what the stream's encoding can show, and colours only where wanted."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Patient(Console):
        """A console that falls silent when its reader goes away (`| head`), so that the exit code stays what it is.

        Whatever is printed, nothing but rich's own styles reaches the terminal as anything else than text.
        """

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for part in super().render(renderable, options):
                yield part if part.control else Segment(visible(part.text), part.style)

        def out(self, *objects: Any, **how: Any) -> None:
            super().out(*(visible(str(o)) for o in objects), **how)

        def on_broken_pipe(self) -> None:
            self.quiet = True
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())

    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # a user's own file names and code may hold anything
    live = stream.isatty() and os.environ.get("TERM") != "dumb"
    coloured = not os.environ.get("NO_COLOR") and (live or os.environ.get("FORCE_COLOR", "0") not in ("", "0"))
    return Patient(
        file=stream,
        force_terminal=live or coloured,
        force_interactive=live and "CI" not in os.environ,
        no_color=not coloured,
        highlight=False,
        soft_wrap=True,
        emoji=False,
        markup=False,
        safe_box=True,
    )


def knows_unicode(stream: Any) -> bool:
    """Whether a stream can show the few signs that we use beyond ASCII."""
    return "utf" in (getattr(stream, "encoding", None) or "").lower()


def _log_handler() -> logging.Handler:
    """Return what writes the log of every library to stderr, escaped."""

    class Escaped(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return visible(super().format(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Escaped("%(name)s: %(message)s"))
    return handler


class Screen:
    """A listener for progress events, and the voice of the command line on stderr. Use it as a context manager."""

    def __init__(self, *, quiet: bool = False, verbose: int = 0) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._console: Console | None = None
        self._status: Status | None = None
        self._unicode = knows_unicode(sys.stderr)  # asked once: while a status is shown, rich puts a proxy there
        self._counted = ""  # "41 trials", while a stage counts

    @property
    def console(self) -> Console:
        """The console on stderr; rich is loaded when it is first needed."""
        if self._console is None:
            self._console = console(sys.stderr)
        return self._console

    def line(self, text: str, style: str = "") -> None:
        """Write one line to stderr."""
        self.console.print(text, style=style or None)

    def error(self, text: str) -> None:
        """Write what is wrong to stderr, also when quiet."""
        from rich.text import Text

        self.console.print(Text.assemble(("error", "bold red"), ": ", text))

    def __call__(self, event: Event) -> None:
        """Show an event, if there is anybody who can be shown it: a closed stderr, or a full disk behind it, stops no work."""
        if self.quiet:
            return
        try:
            self._tell(event)
        except (OSError, ValueError):
            self.quiet = True

    def _tell(self, event: Event) -> None:
        if event.kind == "begin":
            self._counted = ""
            self._show(DOING.get(event.stage, event.stage))
        elif event.kind == "tick":
            self._tick(event)
        elif event.kind == "repair":
            self._mark(">", "cyan", event.stage, f"repairing {event.words}", None)
        else:
            self._end(event)

    def _tick(self, event: Event) -> None:
        if event.total:
            self._counted = f"{event.done} trials"
            filled = round(20 * min(1.0, event.done / event.total))
            full, empty = ("━", "─") if self._unicode else ("#", "-")
            bar = full * filled + empty * (20 - filled)
            self._show(f"{DOING.get(event.stage, event.stage)}  {bar} {event.done} of {event.total}  {event.words}")
        elif event.words:
            self._show(f"{DOING.get(event.stage, event.stage)}: {event.words}")

    def _end(self, event: Event) -> None:
        said = event.words or (self._counted if event.stage == "verify" else "")
        sign, colour = ("+", "green") if event.ok else ("!", "yellow")
        self._mark(sign, colour, event.stage, said, event.seconds)

    def _mark(self, sign: str, colour: str, stage: str, words: str, seconds: float | None) -> None:
        from rich.text import Text

        if self._unicode:
            sign = {"+": "✓", "!": "!", ">": "↻"}[sign]
        self._hide()
        spent = "" if seconds is None else f"{seconds:6.1f} s"
        self.console.print(
            Text.assemble((f"  {sign} ", colour), f"{stage:<10}", (f"{spent:>8}", "dim"), f"  {words}" if words else "")
        )

    def _show(self, words: str) -> None:
        if not self.console.is_interactive:
            return
        from rich.text import Text

        width = max(20, self.console.width - 6)
        shown = Text(words if len(words) <= width else words[: width - 3] + "...")  # a text, as rich reads markup in plain words
        if self._status is None:
            self._status = self.console.status(shown, spinner="dots" if self._unicode else "line", spinner_style="cyan")
            self._status.start()
        else:
            self._status.update(shown)

    def _hide(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __enter__(self) -> Screen:
        if self.verbose:
            logging.basicConfig(level=logging.INFO if self.verbose > 1 else logging.WARNING, handlers=[_log_handler()])
            logging.getLogger("torchferry").setLevel(logging.DEBUG if self.verbose > 1 else logging.INFO)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._hide()
        if self._console is not None and self._console.is_interactive:
            self._console.print()
