"""The element types of ONNX under their three names: the enum, onnxruntime's text ("tensor(float)"), and numpy's."""

from __future__ import annotations

from functools import cache, lru_cache

import ml_dtypes
import numpy as np

# enum value: (onnxruntime's word, numpy dtype); 4-bit types are stored two to a byte and never fed
_TABLE: dict[int, tuple[str, np.dtype]] = {
    1: ("float", np.dtype(np.float32)),
    2: ("uint8", np.dtype(np.uint8)),
    3: ("int8", np.dtype(np.int8)),
    4: ("uint16", np.dtype(np.uint16)),
    5: ("int16", np.dtype(np.int16)),
    6: ("int32", np.dtype(np.int32)),
    7: ("int64", np.dtype(np.int64)),
    8: ("string", np.dtype(object)),
    9: ("bool", np.dtype(np.bool_)),
    10: ("float16", np.dtype(np.float16)),
    11: ("double", np.dtype(np.float64)),
    12: ("uint32", np.dtype(np.uint32)),
    13: ("uint64", np.dtype(np.uint64)),
    14: ("complex64", np.dtype(np.complex64)),
    15: ("complex128", np.dtype(np.complex128)),
    16: ("bfloat16", np.dtype(ml_dtypes.bfloat16)),
    17: ("float8e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn)),
    18: ("float8e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz)),
    19: ("float8e5m2", np.dtype(ml_dtypes.float8_e5m2)),
    20: ("float8e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz)),
    21: ("uint4", np.dtype(ml_dtypes.uint4)),
    22: ("int4", np.dtype(ml_dtypes.int4)),
}
ENUM = {word: number for number, (word, _) in _TABLE.items()}
FLOATS = frozenset({"float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})
INTEGERS = frozenset({"uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "uint4", "int4"})
FOUR_BITS = frozenset({"uint4", "int4", "float4e2m1"})


def word(enum: int) -> str:
    """Return onnxruntime's word for an element type of the enum: "float", "int64", ..."""
    return _TABLE[enum][0] if enum in _TABLE else f"type-{enum}"


def bits(enum: int) -> int | None:
    """Return the size of one element in bits; None for text and for types that we do not know."""
    if enum not in _TABLE or word(enum) == "string":
        return None
    return 4 if word(enum) in FOUR_BITS else _TABLE[enum][1].itemsize * 8


@cache
def of_text(text: str) -> np.dtype | None:
    """Return the numpy dtype of "tensor(float)"; None for sequences, maps and types that numpy has no word for."""
    name = text.removeprefix("tensor(").removesuffix(")")
    return _TABLE[ENUM[name]][1] if text.startswith("tensor(") and name in ENUM else None


@lru_cache(64)  # numpy makes up the name at each question, in ten microseconds
def friendly(dtype: np.dtype) -> str:
    """Return the name that users know: float64, bfloat16, str."""
    return "str" if dtype.kind in "OUS" else dtype.newbyteorder("=").name


@lru_cache(64)
def unknown_to_numpy(dtype: np.dtype) -> bool:
    """Whether a floating-point type is one that numpy itself does not have: bfloat16, or of 8 bits."""
    return dtype.name.startswith(("bfloat16", "float8"))
