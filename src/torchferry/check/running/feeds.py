"""Feeds made to fit what a file declares, where nothing is lost by it; what would lose something is refused in words.

Used by the check stage, to prove that a feed can be mended, and by InferenceSession, to mend it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchferry.check.types import dtypes
from torchferry.records.findings import (
    FeedBfloat16,
    FeedByteOrder,
    FeedDtype,
    FeedDtypeRefused,
    FeedExtra,
    FeedFinding,
    FeedMissingRefused,
    FeedName,
    FeedNotAnArray,
    FeedNotAnArrayRefused,
    FeedRank,
    FeedRankRefused,
)

CONVERTED = "it was turned into one"
# names that say nothing of what they stand for: those that exporters and users make up
NAMELESS = re.compile(r"onnx::\w+|(inputs?|x|data|args?|tensor|sample|value|input_tensor)?([._:/]?\d+)*", re.I)
BATCH = re.compile(r"(.*[^a-z])?(batch|n|b|bs)([^a-z].*)?|batch.*", re.I)


@dataclass(frozen=True, slots=True)
class Declared:
    """One input as the file declares it: its name, onnxruntime's word for its type, and its sizes (None: any)."""

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True, slots=True)
class Change:
    """Something done to a feed so that it fits: to which input, what did not fit (`words`), and what was done about it."""

    kind: type[FeedFinding]
    input: str
    words: str
    done: str
    announced: bool = True  # False: onnxruntime itself takes it, there is nothing to tell


@dataclass(frozen=True, slots=True)
class FeedRefusal:
    """Something that keeps a feed from fitting and that only the user can mend."""

    kind: type[FeedFinding]
    input: str
    words: str
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A feed made to fit, what was done to it, and what could not be done."""

    feed: dict[str, Any]
    changes: tuple[Change, ...] = ()
    refusals: tuple[FeedRefusal, ...] = ()


def declared_by(session: Any) -> tuple[Declared, ...]:
    """Return what an onnxruntime session declares."""
    return tuple(Declared(i.name, i.type, tuple(i.shape)) for i in session.get_inputs())


def fit(declared: Sequence[Declared], feed: Mapping[str, Any], optional: Sequence[str] = ()) -> Fitted:
    """Return `feed` as the file takes it. `optional` names initializers that may be fed too."""
    named, changes, refusals = _names(declared, feed, frozenset(optional))
    fitted: dict[str, Any] = {}
    for spec in declared:
        if spec.name not in named:
            continue
        value, steps = as_array(spec, named[spec.name])
        for step in (_byte_order, _element_type, _rank):
            if not isinstance(value, FeedRefusal):
                value, more = step(spec, value)
                steps = [*steps, *more]
        changes += steps
        if isinstance(value, FeedRefusal):
            refusals.append(value)
        else:
            fitted[spec.name] = value
    fitted |= {name: value for name, value in named.items() if name in optional}
    return Fitted(fitted, tuple(changes), tuple(refusals))


# --- names ------------------------------------------------------------------------------------------


def _names(
    declared: Sequence[Declared], feed: Mapping[str, Any], optional: frozenset[str]
) -> tuple[dict[str, Any], list[Change], list[FeedRefusal]]:
    wanted = {d.name: d for d in declared}
    named = {k: v for k, v in feed.items() if k in wanted or k in optional}
    missing = [n for n in wanted if n not in feed]
    unknown = [k for k in feed if k not in wanted and k not in optional]
    changes: list[Change] = []
    hint = {}
    for key, name in _pairs(unknown, missing, wanted, feed):
        if not _tells(key, name, wanted):
            hint[name] = f"; a guess, not shown: `{key}` may be meant"
            continue
        named[name] = feed[key]
        changes.append(Change(FeedName, name, f"`{key}` is fed, the file's input is called `{name}`", "it was taken for that"))
        unknown.remove(key)
        missing.remove(name)
    changes += [Change(FeedExtra, k, f"`{k}` is fed, the file has no such input", "it was dropped") for k in unknown]
    told = {n: f"the input `{n}` ({_says(wanted[n])}) is not fed{hint.get(n, '')}" for n in missing}
    return named, changes, [FeedRefusal(FeedMissingRefused, name, words) for name, words in told.items()]


def _pairs(
    unknown: list[str], missing: list[str], wanted: Mapping[str, Declared], feed: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return which unknown keys may be which missing inputs: the only ones left that fit, or those of the same name."""
    if len(unknown) == len(missing) == 1:
        return [(unknown[0], missing[0])] if _plausible(wanted[missing[0]], feed[unknown[0]], but=(0,)) else []
    pairs: list[tuple[str, str]] = []
    for alike in (_same, _ends_with):
        for name in [n for n in missing if n not in dict(pairs).values()]:
            near = [k for k in unknown if k not in dict(pairs) and alike(str(k), name)]
            if len(near) == 1 and sum(alike(str(near[0]), n) for n in missing) == 1 and _plausible(wanted[name], feed[near[0]]):
                pairs.append((near[0], name))
    return pairs


def _tells(key: str, name: str, wanted: Mapping[str, Declared]) -> bool:
    """Whether it is plain that a key means an input: by its name; or one of the two says nothing, and no other input is its like.

    A mask that is fed where ids are missing fits them in type and shape, and is not them.
    """
    if _same(key, name) or _ends_with(key, name):
        return True
    like = [d for d in wanted.values() if d.name != name and (d.type, len(d.shape or ())) == _kind(wanted[name])]
    return not like and any(NAMELESS.fullmatch(word) for word in (key, name))


def _kind(spec: Declared) -> tuple[str, int]:
    return spec.type, len(spec.shape or ())


def _same(key: str, name: str) -> bool:
    """Whether two names are one but for what tools add: `:0`, dots, slashes, case."""
    return "".join(_words(key)) == "".join(_words(name))


def _ends_with(key: str, name: str) -> bool:
    """Whether a name is the other with words before it: `serving_default_x:0` is `x` as TensorFlow spells it."""
    one, two = _words(key), _words(name)
    return bool(one and two) and (two[-len(one) :] == one or one[-len(two) :] == two)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r":\d+$", "", name).lower())


def _plausible(spec: Declared, value: Any, but: tuple[int, ...] = ()) -> bool:
    """Whether a value could be meant for an input; `but` are axes whose size need not fit: a batch may be another one."""
    fitted = fit((spec,), {spec.name: value})
    return not fitted.refusals and spec.name in fitted.feed and set(misfits(spec, shapes(fitted.feed).get(spec.name))) <= set(but)


def misfits(spec: Declared, shape: tuple[int, ...] | None) -> Sequence[int]:
    """Return the axes whose fixed size is not the one in `shape`, that of a value for it (None: it has none)."""
    if shape is None or spec.shape is None or spec.shape == shape or len(shape) != len(spec.shape):
        return ()
    return [i for i, want in enumerate(spec.shape) if isinstance(want, int) and want >= 0 and want != shape[i]]


def turned(spec: Declared, shape: tuple[int, ...]) -> bool:
    """Whether a fixed size that is not fed stands at another axis, where it is not declared: an image with its channels last."""
    lost = [spec.shape[i] for i in misfits(spec, shape) if spec.shape and (i or spec.shape[i] != 1)]  # a batch of 1 is no sign
    return any(got in lost and want != got for want, got in zip(spec.shape or (), shape, strict=True))


def shapes(feed: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in a feed."""
    return {name: value.shape for name, value in feed.items() if isinstance(value, np.ndarray)}


# --- values -----------------------------------------------------------------------------------------


def as_array(spec: Declared, value: Any) -> tuple[Any, list[Change]]:
    """Return a value as a numpy array, or why it cannot be one; sequences, maps and OrtValues stay as they are."""
    want = dtypes.of_text(spec.type)
    if spec.type.startswith("seq(tensor("):
        return _sequence(spec, value)
    if want is None or type(value).__name__ == "OrtValue":
        return value, []
    kind = type(value).__module__.split(".")[0] + "." + type(value).__name__
    if isinstance(value, np.ndarray):
        return (value, []) if want.kind == "O" or value.dtype.kind != "O" else _from_objects(spec, value)
    if value is None:
        return FeedRefusal(FeedNotAnArrayRefused, spec.name, f"the input `{spec.name}` is fed None"), []
    try:
        array = _from_torch(value) if hasattr(value, "detach") and hasattr(value, "cpu") else np.asarray(value)
    except Exception as error:  # an object may raise anything when it is asked for its numbers
        return FeedRefusal(
            FeedNotAnArrayRefused, spec.name, f"the {kind} for `{spec.name}` cannot be turned into an array: {error}"
        ), []
    if array.dtype.kind == "O" and want.kind != "O":
        return _from_objects(spec, array)
    if isinstance(value, (list, int, float, bool, tuple)) and array.dtype.kind in "fiub":
        array = _plain(array, want)
    told = not isinstance(value, list)  # onnxruntime takes lists
    return array, [Change(FeedNotAnArray, spec.name, f"`{spec.name}` is fed a {kind}, not a numpy array", CONVERTED, told)]


def _sequence(spec: Declared, value: Any) -> tuple[Any, list[Change]]:
    """Return a list of arrays, each made to fit as one would be; a tuple, and an array, whose rows are meant, is no list."""
    if not isinstance(value, (list, tuple)):
        words = f"`{spec.name}` takes a list of arrays, a {type(value).__name__} is fed"
        return FeedRefusal(FeedNotAnArrayRefused, spec.name, words), []
    element = Declared(spec.name, spec.type.removeprefix("seq(").removesuffix(")"), None)
    fitted = [fit((element,), {spec.name: item}) for item in value]
    if refused := [r for f in fitted for r in f.refusals]:
        return refused[0], []
    changes = list({c.kind: c for f in fitted for c in f.changes}.values())
    if isinstance(value, tuple):
        changes.append(Change(FeedNotAnArray, spec.name, f"`{spec.name}` is fed a tuple, not a list", CONVERTED))
    return [f.feed[spec.name] for f in fitted], changes


def _from_torch(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    tensor = tensor.resolve_conj() if tensor.is_complex() else tensor
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return np.asarray(tensor.contiguous().view(torch.uint16).numpy()).view(ml_dtypes.bfloat16)
    return np.asarray(tensor.resolve_neg().numpy())


def _from_objects(spec: Declared, value: np.ndarray) -> tuple[Any, list[Change]]:
    try:
        array = np.asarray(value.tolist())
    except (ValueError, TypeError):
        array = value
    if array.dtype.kind not in "fiub":
        return FeedRefusal(
            FeedNotAnArrayRefused, spec.name, f"the array for `{spec.name}` holds Python objects that are not all numbers"
        ), []
    return array, [
        Change(
            FeedNotAnArray,
            spec.name,
            f"`{spec.name}` is fed an array of Python objects",
            f"they were turned into {array.dtype}",
        )
    ]


def _plain(array: np.ndarray, want: np.dtype) -> np.ndarray:
    """Return Python's own numbers in the wanted type where they are the same numbers there: they came without a type."""
    if want.kind in "fiub":
        with np.errstate(all="ignore"):
            cast = array.astype(want)
        if want.kind == "f" or np.array_equal(cast, array):
            return cast
    return array


def _byte_order(spec: Declared, value: Any) -> tuple[Any, list[Change]]:
    if not isinstance(value, np.ndarray) or value.dtype.isnative:
        return value, []
    words = f"`{spec.name}` is in foreign byte order (big-endian, {value.dtype.str}), which onnxruntime misreads without an error"
    return value.astype(value.dtype.newbyteorder("=")), [Change(FeedByteOrder, spec.name, words, "its bytes were swapped")]


def _element_type(spec: Declared, value: Any) -> tuple[Any, list[Change]]:
    want = dtypes.of_text(spec.type)
    if want is None or not isinstance(value, np.ndarray):
        return value, []
    if value.dtype == want:
        if dtypes.unknown_to_numpy(want):
            words = f"`{spec.name}` is {want.name}, which onnxruntime does not take from numpy"
            return value, [Change(FeedBfloat16, spec.name, words, "it was passed as an OrtValue")]
        return value, []
    if want.kind == "O":
        if value.dtype.kind in "US":
            return value, []
        return FeedRefusal(FeedDtypeRefused, spec.name, f"`{spec.name}` takes text, {dtypes.friendly(value.dtype)} is fed"), []
    given, wanted = dtypes.friendly(value.dtype), dtypes.friendly(want)
    cast, lost = _cast(value, want)
    if cast is None:
        return FeedRefusal(FeedDtypeRefused, spec.name, f"`{spec.name}` is {given}, the file takes {wanted}: {lost}"), []
    return cast, [Change(FeedDtype, spec.name, f"`{spec.name}` is fed as {given}, the file takes {wanted}", _done(value, cast))]


def _done(value: np.ndarray, cast: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        same = np.array_equal(cast.astype(np.float64), value.astype(np.float64), equal_nan=True)
    return "it was cast: nothing is lost" if same else "it was cast, and rounded to as many digits as that has"


def _cast(value: np.ndarray, want: np.dtype) -> tuple[np.ndarray | None, str]:
    """Return the array in another type, or None and what would be lost."""
    ours = value.dtype.kind == "V" and value.dtype.type is not np.void  # a float that numpy has no word for
    given = "f" if ours or dtypes.unknown_to_numpy(value.dtype) else value.dtype.kind
    target = "f" if dtypes.unknown_to_numpy(want) else want.kind
    if given not in "fiub":
        return None, {"c": "the imaginary part would be lost", "U": "text is no number", "S": "text is no number"}.get(
            given, "it holds no numbers"
        )
    if given == "f" and target in "iub":
        return None, "a cast would lose the fractions; round or index first, then cast"
    with np.errstate(all="ignore"):
        cast = value.astype(want)
    if given == "f":
        wide, narrow = value.astype(np.float64), cast.astype(np.float64)
        overflow = np.isinf(narrow) & np.isfinite(wide)
        if overflow.any():
            return None, f"{_first(value, overflow)} is beyond its range"
        tiny = 1e-30 if want.itemsize >= 4 else 1e-3  # denormals are noise, unless that is all there is
        gone = (narrow == 0) & (np.abs(wide) > 0)
        lost = gone.any() and np.abs(wide).max() < tiny
        return (None, f"{_first(value, gone)} would become 0") if lost else (cast, "")
    # compared as exact integers: int64 to float32 and back must be the same number
    with np.errstate(all="ignore"):
        same = cast.astype(value.dtype) == value if target == "f" else (cast == value)
    return (cast, "") if np.all(same) else (None, f"{_first(value, ~same)} cannot be written in it")


def _first(value: np.ndarray, where: np.ndarray) -> str:
    index = tuple(int(i) for i in np.argwhere(where)[0])
    return f"the value {value[index]} at {list(index)}"


def _rank(spec: Declared, value: Any) -> tuple[Any, list[Change]]:
    """Return the array with the one axis of size 1 that it lacks, where there is one place for it."""
    if spec.shape is None or not spec.shape or not isinstance(value, np.ndarray) or value.ndim == len(spec.shape):
        return value, []  # rank 0 is not checked by onnxruntime, and a (1,) array is right for it
    says = f"`{spec.name}` has rank {value.ndim} {list(value.shape)}, the file takes rank {len(spec.shape)} ({_says(spec)})"
    if value.ndim != len(spec.shape) - 1:
        return FeedRefusal(FeedRankRefused, spec.name, says), []
    fits = [
        i for i in range(len(spec.shape)) if _could_be_one(spec.shape[i]) and not misfits(spec, np.expand_dims(value, i).shape)
    ]
    if not fits:
        return FeedRefusal(FeedRankRefused, spec.name, says + ", and no axis of size 1 makes it fit"), []
    named = [i for i in fits if isinstance(size := spec.shape[i], str) and BATCH.fullmatch(size)]
    if len(fits) > 1 and len(named) != 1:
        words = f", and an axis of size 1 fits at {fits}; a guess, not shown: `{spec.name}[None]`"
        return FeedRefusal(FeedRankRefused, spec.name, says + words), []
    axis = fits[0] if len(fits) == 1 else named[0]  # the only place, or the one that the file calls a batch
    which = "the batch axis in front" if axis == 0 else f"axis {axis}"
    return np.expand_dims(value, axis), [Change(FeedRank, spec.name, says, f"{which} was added")]


def _could_be_one(size: int | str | None) -> bool:
    return not isinstance(size, int) or size in (1, -1)


def _says(spec: Declared) -> str:
    name = dtypes.of_text(spec.type)
    sizes = "" if spec.shape is None else "[" + ", ".join("?" if s is None else str(s) for s in spec.shape) + "]"
    return f"{dtypes.friendly(name) if name is not None else spec.type}{sizes}"
