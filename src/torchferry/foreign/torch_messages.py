"""Door to what torch says where it refuses, as far as its errors have no type or field for it.

Relies on the wording of `torch/csrc/autograd` (a gradient of what has none), of `aten` (an index past the rows of a table,
another number of channels, another dtype or device, a quantised backend), of `torch/csrc/utils` (numpy), of `torch._library`
and `torch._subclasses` (operators without a fake kernel), of `torch._export` and `torch.fx.experimental.symbolic_shapes` (sizes
that were fixed, values that were asked for), of `torch._dynamo.side_effects` (an attribute that a loop's body changed) and of
TorchScript's interpreter.
Should they move: the test beside this door provokes each of them, and has the new words.
"""

from __future__ import annotations

import re

_NO_GRADIENT = "does not require grad and does not have a grad_fn"
_FIXED = (
    "specialized it to be a constant",
    "conflicts between user-specified ranges and inferred ranges",
    "Constraints violated",
)
_VALUES = (
    "unhashable type: non-nested SymInt",
    "unsupported format string passed to FakeTensor",
    "data-dependent",
    "Data-dependent",
    "data dependent",
    "DataDependentOutputException",
    "GuardOnDataDependentSymNode",
    "are valid indices (got SymInt)",  # in the body of a loop that the user wrote as torch's own
)
_LEAVES_TORCH = (  # for numpy, for what reads arrays as numpy does, and for what takes an address
    ".numpy() is not supported for tensor subclasses",
    "Can't call numpy() on",
    "expected np.ndarray (got",
    "Cannot access data pointer of Tensor (e.g. FakeTensor",
    "__array__",
)
_NO_FAKE_KERNEL = ("There was no fake impl registered", "no fake impl or Meta kernel registered", "unsupported operator:")
_QUANTISED = ("quantize_per_tensor", "quantize_per_channel", "quantized::", "from the 'QuantizedCPU'")
_NO_INDICES = re.compile(r"tensors used as indices must be|to have one of the following scalar types: Long")
_OTHER_DTYPE = re.compile(
    r"to have one of the following scalar types|expected scalar type|must have the same dtype|have the same dtype, but got"
    r"|Input type \(\S+\) and (bias|weight) type|not implemented for '(Long|Int|Bool|Char|Byte|Short)'"
)
_OTHER_DEVICE = re.compile(
    r"to be on the same device|is not on the expected device|Input type \(torch\.cuda|weight type \(torch\.cuda|on device meta"
)
_NO_SUCH_DEVICE = ("not compiled with CUDA", "NVIDIA driver")
_CHANGED = re.compile(r"Attribute '(\w+)' on an outer-scope object was changed")
_CHANGED_AT = re.compile(r"Attempted to mutate .*\n +[\w.]+\.(\w+) *[^\w\s=(]{0,3}= ", re.DOTALL)  # torch 2.12 shows its line


def needs_gradients(text: str) -> bool:
    """Say whether a call failed because it takes a gradient where none is recorded."""
    return _NO_GRADIENT in text


def fixes_a_size(text: str) -> bool:
    """Say whether a capture failed because a size that should move was fixed."""
    return any(phrase in text for phrase in _FIXED)


def needs_values(type_name: str, text: str) -> bool:
    """Say whether a capture failed because Python asked for the value of a tensor."""
    return any(phrase in text or phrase == type_name for phrase in _VALUES)


def leaves_torch(text: str) -> bool:
    """Say whether a capture failed because a tensor was handed to numpy, or to other code that reads its memory."""
    return any(phrase in text for phrase in _LEAVES_TORCH)


def operator_without_fake_kernel(text: str) -> str | None:
    """Return the operator that a capture stopped at because nothing tells the shape of its result; None for other messages."""
    if not any(phrase in text for phrase in _NO_FAKE_KERNEL):
        return None
    named = re.search(r"(\w+)::(\w+)", text) or re.search(r"unsupported operator: (\w+)\.(\w+)", text)
    return f"{named[1]}::{named[2]}" if named else None


def quantised_function(text: str) -> str | None:
    """Return what a message calls the quantised function that could not be captured, or None."""
    return next((phrase for phrase in _QUANTISED if phrase in text), None)


def wants_indices(text: str) -> bool:
    """Say whether a call failed because an index is of no type that can be one."""
    return _NO_INDICES.search(text) is not None


def wants_another_dtype(text: str) -> bool:
    """Say whether a call failed because of the dtype of a tensor, indices included."""
    return (wants_indices(text) or _OTHER_DTYPE.search(text) is not None) and not wants_another_device(text)


def wants_another_device(text: str) -> bool:
    """Say whether a call failed because tensors are on different devices."""
    return _OTHER_DEVICE.search(text) is not None


def lacks_device(text: str) -> bool:
    """Say whether a call failed because this machine, or this build of torch, does not have the device that was asked for."""
    return any(phrase in text for phrase in _NO_SUCH_DEVICE)


def changed_attribute(text: str) -> str | None:
    """Return the attribute that the body of a loop or a branch was found to change; it is found at its end, with no line."""
    match = _CHANGED.search(text) or _CHANGED_AT.search(text)
    return match[1] if match else None


def past_the_rows(text: str) -> bool:
    """Say whether an index went past the rows of a table."""
    return "index out of range in self" in text


def may_be_past_an_end(text: str) -> bool:
    """Say whether an index, or a length, may have gone past the end of something: reason enough to try again with small ones."""
    return any(word in text for word in ("index", "range", "bounds", "length"))


def wants_channels(text: str) -> bool:
    """Say whether a convolution was given another number of channels than it has weights for."""
    return re.search(r"to have \d+ channels, but got \d+ channels instead", text) is not None


def telling_line(text: str) -> str:
    """Return the line of a message that says what was wrong: TorchScript's interpreter tells where it was before that."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return lines[-1 if "The following operation failed in the TorchScript interpreter" in lines[0] else 0]
