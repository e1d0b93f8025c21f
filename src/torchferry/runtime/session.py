"""A drop-in for onnxruntime.InferenceSession: errors come explained, feeds are made to fit where nothing is lost by it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.check.reading.fingerprint import SESSION_KEY
from torchferry.check.reading.metadata import settings_in
from torchferry.check.reading.operator_names import has_functions
from torchferry.check.reading.sniff import sniff
from torchferry.check.running.feeds import Change, declared_by, fit
from torchferry.check.types.dtypes import of_text
from torchferry.errors import FeedError, FileRefused, TorchferryError, Worded, did_you_mean
from torchferry.extras import require
from torchferry.foreign import onnxruntime as ort
from torchferry.records.findings import FeedBfloat16, FeedByteOrder, FeedFinding
from torchferry.runtime import feed_words
from torchferry.runtime.exact_products import exact_products
from torchferry.runtime.explain import SECONDS, explain
from torchferry.runtime.feed_words import CODES, LIKE

# It turns a lookup of counted positions into a slice, which hides positions beyond the table: wrong numbers, no error.
HIDES_ERRORS = "GatherToSliceFusion"


ARRAYS = {np.ndarray}
# Where onnxruntime looks for the weights of a model that is given as bytes; without it, it fails on some models.
WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"


class CoercionWarning(Worded, UserWarning):
    """A feed was changed so that it fits; nothing was lost by it."""


MORE = f"`error.explain()` looks deeper: it checks the file with this feed in another process, for {SECONDS:g} s at most"
MORE_ASYNC = "`torchferry check` with this feed looks deeper"
MOST_ANNOUNCED = 1000  # changes of feeds: a client that sends other names each time must not fill the memory
MOST_KEPT = 64  # explanations of a session: each belongs to one message and the shapes that were fed


class SessionError(TorchferryError, RuntimeError):
    """onnxruntime's error with its explanation; an instance of onnxruntime's own class too, so `except` clauses still work."""

    deeper: Callable[[float], str] | None = None

    def explain(self, seconds: float = SECONDS) -> str:
        """Return why it happened, found by a check of the file with the feed that failed, which may take so many seconds.

        What came of it is kept by the session: the same failure at the same sizes is not looked into twice.
        """
        return (self.deeper(seconds) if self.deeper is not None else "") or str(self)


class InferenceSession:
    """`onnxruntime.InferenceSession`: the same constructor and methods, and whatever is not here is that session's.

    strict=True turns coercion off. What is coerced is announced once for each input by a `CoercionWarning` with its code;
    what would lose something raises `FeedError`, which names the input. A run that fails raises `SessionError` at once, with what
    the file's declaration and certificate say of the feed; `SessionError.explain()` searches for the cause. A file that does not
    open is searched right away, for a minute at most.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        strict: bool = False,
        **more: Any,
    ) -> None:
        require("a session", "onnxruntime")
        self.strict = strict
        self._source = path_or_bytes
        self._arguments = (sess_options, providers, provider_options, more)
        self._session = self._open(sess_options, providers, provider_options, more)
        self._declared = declared_by(self._session)
        self._optional = tuple(i.name for i in self._session.get_overridable_initializers())
        self._wanted = {d.name: of_text(d.type) for d in self._declared}
        self._names, self._dtypes = list(self._wanted), list(self._wanted.values())
        ranks = {d.name: len(d.shape) for d in self._declared if d.shape}  # onnxruntime takes any array where it says none
        self._ranked, self._ranks = list(ranks), list(ranks.values())
        # bfloat16 and float8 go through OrtValues, in and out
        self._plain = not any(
            "float8" in v.type or "bfloat16" in v.type for v in (*self._session.get_inputs(), *self._session.get_outputs())
        )
        self._announced: set[tuple[type[FeedFinding], str]] = set()
        self._found: dict[Any, str] = {}  # what explanations came to

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        """Return the outputs asked for; all of them for None."""
        if self._plain and self._fits(input_feed):
            try:
                return self._session.run(output_names, input_feed, run_options)  # type: ignore[no-any-return]
            except Exception as error:  # whatever onnxruntime raises is raised again, explained
                if self.strict or [input_feed[name].ndim for name in self._ranked] == self._ranks:
                    raise self._explained(error, input_feed, output_names) from error
        fitted = self._fitted(input_feed)
        try:
            return ort.run(self._session, fitted, output_names, run_options)
        except Exception as error:  # whatever onnxruntime raises is raised again, explained
            raise self._explained(error, fitted, output_names) from error

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], Any],
        user_data: Any,
        run_options: Any = None,
    ) -> None:
        """Begin a run and return; `callback` gets the outputs, `user_data` and what went wrong, explained."""
        fed = self._fitted(input_feed)

        def explained(outputs: list[Any], given: Any, error: str) -> None:
            callback(outputs, given, _told(self._words(fed, output_names), error, MORE_ASYNC) if error else "")

        self._session.run_async(output_names, fed, explained, user_data, run_options)

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """Return the outputs asked for as OrtValues, from OrtValues; none of these is coerced."""
        try:
            return self._session.run_with_ort_values(output_names, input_dict_ort_values, run_options)  # type: ignore[no-any-return]
        except Exception as error:  # whatever onnxruntime raises is raised again, explained
            raise self._explained(error, input_dict_ort_values, output_names) from error

    def _fits(self, feed: Mapping[str, Any]) -> bool:
        """Whether a feed is of arrays of the declared types. Called at every run, so it leaves the looping to the interpreter."""
        try:
            values = list(feed.values())
        except AttributeError:  # it is no feed at all, which is said where it would be made to fit
            return False
        if set(map(type, values)) != ARRAYS:
            return False
        wanted = self._dtypes if list(feed) == self._names else [self._wanted.get(name) for name in feed]
        return len(values) == len(self._wanted) and [v.dtype for v in values] == wanted

    def profile(self, feeds: Any, runs: int = 10) -> Any:
        """Return where the time goes: a table by operator, by node, and by PyTorch module and source line."""
        from torchferry.runtime.profile import profile

        _, providers, provider_options, more = self._arguments
        given = [feeds] if isinstance(feeds, Mapping) else list(feeds)
        reopened = lambda options: open_like_the_user(self._source, options, providers, provider_options, more)  # noqa: E731
        try:
            return profile(self._source, given, runs, reopened)
        except Exception as error:  # whatever onnxruntime raises names nodes of the file, in words of their own
            raise with_words(error, "") from error

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._session)})

    def __getattr__(self, name: str) -> Any:
        if name == "_session":  # not opened: there is nothing to ask
            raise AttributeError(name)
        return getattr(self._session, name)

    def _open(self, options: Any, providers: Any, provider_options: Any, more: dict[str, Any]) -> Any:
        arguments = (options, providers, provider_options, more)
        _refuse_what_waits(self._source)
        _refuse_without_end(self._source)
        try:
            session = self._first_opened(arguments)
            told = session.get_modelmeta().custom_metadata_map.get(SESSION_KEY)
            mended = exact_products(self._source) if _of_the_cpu(session) else None
            if not told and mended is None:
                return session
            settings = settings_in(told)
            if mended is not None and (folder := self._weights_folder()) is not None:
                settings |= {"config": {WEIGHTS_FOLDER: folder}}
            return open_like_the_user(self._source if mended is None else mended, *arguments, settings=settings)
        except FileRefused:
            raise
        except Exception as error:  # whatever onnxruntime raises is raised again, explained
            raise with_words(error, explain(self._source, None)) from error

    def _first_opened(self, arguments: tuple[Any, Any, Any, dict[str, Any]]) -> Any:
        """Return the session; a model in bytes with weights elsewhere is opened again with the folder where these may lie."""
        try:
            return open_like_the_user(self._source, *arguments)
        except Exception:  # onnxruntime's own kinds; only one of the many reasons can be helped here
            if not isinstance(self._source, bytes) or (here := weights_folder(self._source)) is None:
                raise
            return open_like_the_user(self._source, *arguments, settings={"config": {WEIGHTS_FOLDER: here}})

    def _weights_folder(self) -> str | None:
        return weights_folder(self._source) if isinstance(self._source, bytes) else str(Path(self._source).parent)

    def _fitted(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the feed made to fit, what was changed announced; raises FeedError where that would lose something."""
        _refuse_other_than_names(feed)
        if self.strict:
            _refuse_foreign_bytes(feed)
            return dict(feed)
        result = fit(self._declared, feed, self._optional)
        if result.refusals:
            raise FeedError("; ".join(f"{CODES[r.kind]}: {r.words}{LIKE.get(r.kind, '')}" for r in result.refusals))
        self._announce([c for c in result.changes if c.announced])
        return dict(result.feed)

    def _announce(self, changes: list[Change]) -> None:
        for change in changes:
            known = (change.kind, change.input) in self._announced or len(self._announced) >= MOST_ANNOUNCED
            if not known and change.kind is not FeedBfloat16:
                self._announced.add((change.kind, change.input))
                warnings.warn(f"{CODES[change.kind]}: {change.words}; {change.done}", CoercionWarning, stacklevel=4)

    def _explained(self, error: Exception, feed: Mapping[str, Any], names: Sequence[str] | None) -> Exception:
        """Return a run's error with what can be said at once, and the way to more."""
        told = with_words(error, self._words(feed, names), MORE)
        told.deeper = lambda seconds: self._searched(error, feed, seconds)
        return told

    def _words(self, feed: Mapping[str, Any], names: Sequence[str] | None) -> str:
        """Return what is wrong with the feed, or the outputs asked for, as far as a lookup tells."""
        if names is not None and (isinstance(names, str | bytes) or not _all_text(names)):
            return "the outputs asked for are a list of names, or None for all of them"
        there = [o.name for o in self._session.get_outputs()] if names else []
        unknown = [name for name in names or () if name not in there]
        if unknown:
            return f"the file has no output `{unknown[0]}`{did_you_mean(unknown[0], there)}; it has {', '.join(there)}"
        return feed_words.words(self._expected, feed) if isinstance(feed, Mapping) else ""

    @cached_property
    def _expected(self) -> feed_words.Expected:
        return feed_words.Expected.of(self._declared, self._session.get_modelmeta().custom_metadata_map, self.strict)

    def _searched(self, error: Exception, feed: Mapping[str, Any], seconds: float) -> str:
        """Return the cause of a failed run, searched for once for each message and set of shapes."""
        arrays = {name: ort.array_of(v) if type(v).__name__ == "OrtValue" else v for name, v in feed.items()}
        cause = (str(error), seconds, tuple((name, getattr(v, "shape", None)) for name, v in arrays.items()))
        if cause not in self._found:
            found = explain(self._source, arrays, seconds)
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[cause] = found
        return self._found[cause]


def open_like_the_user(
    source: Any,
    options: Any,
    providers: Any,
    provider_options: Any,
    more: Mapping[str, Any],
    *,
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Return an onnxruntime session as asked for, without the optimiser that hides errors, and with the file's own settings."""
    settings = settings or {}
    options = options if options is not None else ort.silent_options()
    more = dict(more)
    if "disabled_optimizers" not in more:
        more["disabled_optimizers"] = [HIDES_ERRORS, *settings.get("disabled_optimizers", ())]
    for key, value in {**_format(source), **settings.get("config", {})}.items():
        if not options.has_session_config_entry(key) if hasattr(options, "has_session_config_entry") else True:
            options.add_session_config_entry(key, value)
    return ort.session_as_asked(source, options, providers, provider_options, **more)


def _of_the_cpu(session: Any) -> bool:
    """Whether products are made by the processor, and the user has not asked onnxruntime for precise ones."""
    try:
        precise = session.get_session_options().get_session_config_entry("session.x64quantprecision") == "1"
    except RuntimeError:  # that is how it says that there is no such entry
        precise = False
    return list(session.get_providers()) == ["CPUExecutionProvider"] and not precise


def weights_folder(model: bytes) -> str | None:
    """Return the working directory if all the weights that a model keeps in other files lie there; None if it has none."""
    import onnx

    from torchferry.check.reading import external

    try:
        pieces = external.pieces(onnx.load_model_from_string(model))
    except Exception:  # not a model at all: the explanation of the first error says so
        return None
    here = Path.cwd()
    lie_here = all(external.path_trouble(p.location) is None and (here / p.location).is_file() for p in pieces)
    return str(here) if pieces and lie_here else None


def _format(source: Any) -> dict[str, str]:
    """Return the setting that makes onnxruntime read a file as what it is, where its name says otherwise."""
    if isinstance(source, bytes):
        return {}
    path = Path(source)
    kind, named = sniff(path).kind, path.suffix == ".ort"
    if kind == "ort-format" and not named:
        return {"session.load_model_format": "ORT"}
    return {"session.load_model_format": "ONNX"} if kind == "onnx" and named else {}


def _refuse_other_than_names(feed: Any) -> None:
    if not isinstance(feed, Mapping):
        raise FeedError(f"a feed is a dict, of an array for each name of an input; a {type(feed).__name__} is fed")
    if (odd := next((key for key in feed if not isinstance(key, str)), "")) != "":
        raise FeedError(f"the names of inputs are text; {odd!r} is a {type(odd).__name__}")


def _all_text(names: Any) -> bool:
    return isinstance(names, Iterable) and all(isinstance(name, str) for name in names)


def _refuse_foreign_bytes(feed: Mapping[str, Any]) -> None:
    for name, value in feed.items():
        if isinstance(value, np.ndarray) and not value.dtype.isnative:
            raise FeedError(
                f"{CODES[FeedByteOrder]}: `{name}` is in foreign byte order ({value.dtype.str}), which onnxruntime misreads"
            )


def _refuse_what_waits(source: Any) -> None:
    """Raise SessionError for a pipe or a device, on which onnxruntime would wait for ever."""
    found = sniff(Path(source)) if isinstance(source, str | os.PathLike) and not os.path.isfile(source) else None
    if found is not None and found.kind == "unreadable":
        raise SessionError(f"`{source}` cannot be opened: {found.error}")


def _refuse_without_end(source: Any) -> None:
    """Raise SessionError for functions that call each other so often, or so deep, that onnxruntime would not come back."""
    if not has_functions(source):
        return
    import onnx

    from torchferry.check.reading.graph import MOST_DEEP, MOST_NODES, nested, written_out

    try:
        model = onnx.load_model_from_string(source if isinstance(source, bytes) else Path(source).read_bytes())
    except Exception:  # no ONNX file: the session says what it makes of it
        return
    if MOST_NODES < (nodes := written_out(model)) < math.inf:  # one that calls itself is refused by onnxruntime, in words
        raise SessionError(
            f"the file's functions call each other until they come to {nodes:.2g} nodes, and it is not opened: onnxruntime "
            f"writes them out, and would not come back; {MOST_NODES:,} is the most"
        )
    if MOST_DEEP < (depth := nested(model)) < math.inf:
        raise SessionError(
            f"the file's functions call each other {depth:,} deep, and it is not opened: onnxruntime, which follows them on the "
            f"stack, would end this process; {MOST_DEEP} is the most"
        )


def with_words(error: Exception, words: str, more: str = "") -> SessionError:
    """Return an error of onnxruntime's with its explanation, of a class that is its own and ours."""
    kind: Any = type(error)
    made: SessionError = _subclass(kind)(_told(words, str(error), more))
    return made


def _told(words: str, error: str, more: str = "") -> str:
    return "\n".join(filter(None, (words, f"onnxruntime said: {error}" if words or more else error, more)))


@cache
def _subclass(kind: Any) -> Any:
    return type(kind.__name__, (SessionError, kind), {"__doc__": SessionError.__doc__, "__module__": __name__})
