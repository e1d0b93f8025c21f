"""What the words of options mean: `x:2x3:float32`, `batch=1..64`, `ids:batch,_`. Loads nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torchferry.errors import UsageError, did_you_mean

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExampleInput:
    """An example to be made: its name, sizes and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def example_input(text: str) -> ExampleInput:
    """Return what `x:2x3:float32` asks for. Without a dtype, names that end in `ids` or `mask` are int64, others float32."""
    name, _, rest = text.partition(":")
    sizes, _, dtype = rest.partition(":")
    if not name or ":" not in text or not re.fullmatch(r"(\d+([x,]\d+)*)?", sizes):
        raise UsageError(f"--input `{text}` is not understood; write NAME:SHAPE:DTYPE, as in x:2x3:float32 or ids:1x8:int64")
    dtype = dtype or ("int64" if name.endswith(("ids", "mask")) else "float32")
    if dtype not in DTYPES:
        raise UsageError(f"--input `{text}`: no dtype is called `{dtype}`{did_you_mean(dtype, DTYPES)}")
    return ExampleInput(name, tuple(int(n) for n in re.split("[x,]", sizes) if n), dtype)


def size_range(text: str) -> tuple[str, tuple[int, int | None]]:
    """Return what `batch=1..64`, `batch=1..` or `batch=8` asks for."""
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*(\.\.\s*(\d*))?\s*", text)
    if match is None:
        raise UsageError(f"--range `{text}` is not understood; write DIM=LOW..HIGH, as in batch=1..64 or length=1..")
    low = int(match[2])
    high = low if match[3] is None else int(match[4]) if match[4] else None
    if high is not None and high < low:
        raise UsageError(f"--range `{text}` ends before it begins")
    return match[1], (low, high)


def size_ranges(texts: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """Return all ranges by the name of the size."""
    found: dict[str, tuple[int, int | None]] = {}
    for name, span in map(size_range, texts):
        if name in found:
            raise UsageError(f"--range names `{name}` twice")
        found[name] = span
    return found


def value_domains(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return what `t=0..999` or `x=-1..1` asks for, by the name of the input."""
    number = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        match = re.fullmatch(rf"\s*([^=\s]+)\s*=\s*({number})\s*\.\.\s*({number})\s*", text)
        if match is None:
            raise UsageError(f"--domain `{text}` is not understood; write INPUT=LOW..HIGH, as in t=0..999 or x=-1..1")
        if match[1] in found:
            raise UsageError(f"--domain names `{match[1]}` twice")
        low, high = float(match[2]), float(match[3])
        if low > high:
            raise UsageError(f"--domain `{text}` ends before it begins")
        found[match[1]] = (low, high)
    return found


def tolerance(text: str | None) -> tuple[float, float] | None:
    """Return what `1e-3` or `1e-3,1e-5` asks for: relative and absolute."""
    if text is None:
        return None
    try:
        ends = [float(part) for part in text.split(",")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or not all(0 <= e < float("inf") for e in ends):
        raise UsageError(f"--tolerance `{text}` is not understood; write RTOL or RTOL,ATOL, as in 1e-3 or 1e-3,1e-5")
    return ends[0], ends[-1]


def names(text: str | None) -> tuple[str, ...] | None:
    """Return the names in `ids,mask`."""
    return None if text is None else tuple(word.strip() for word in text.split(","))


def moving_axes(texts: Sequence[str]) -> dict[str, dict[int, str]] | str | None:
    """Return dynamic_axes for `ids:batch,length` (`_` or a number: fixed); "none" for fixed sizes; None: to be found out."""
    if not texts:
        return None
    if "none" in texts:
        if len(texts) > 1:
            raise UsageError("--dynamic none says that no size moves; leave out the other --dynamic options")
        return "none"
    axes = {}
    for text in texts:
        name, _, names = text.partition(":")
        if not name or not re.fullmatch(r"\s*(\w+)(\s*,\s*\w+)*\s*", names):
            raise UsageError(f"--dynamic `{text}` is not understood; write NAME:AXES, as in ids:batch,length or x:batch,_,_")
        named = {axis: word.strip() for axis, word in enumerate(names.split(","))}
        axes[name] = {axis: word for axis, word in named.items() if word != "_" and not word.isdigit()}
    return axes
