"""What eager did, op by op: names, the user's lines, module paths and, on request, the values that came out."""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from torchferry import eager, whose_code
from torchferry.eager import calls
from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import is_mutable
from torchferry.foreign.torch_trees import arg_tree_leaves
from torchferry.records import Location
from torchferry.verify.arrays import Array, array
from torchferry.verify.run.sums_in_turn import in_turn

SORTING = ("sort", "topk", "argmax", "argmin", "argsort", "max", "min", "kthvalue", "mode", "median", "_unique2", "unique_dim")
# ops with one right result: exactly rounded, or no arithmetic at all
EXACT = frozenset((
    "add", "sub", "mul", "div", "neg", "abs", "floor", "ceil", "round", "trunc", "fmod", "remainder", "floor_divide",
    "sign", "relu", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "max", "min", "amax", "amin", "eq", "ne",
    "lt", "le", "gt", "ge", "where", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_not", "bitwise_xor", "__rshift__", "__lshift__", "bitwise_right_shift", "bitwise_left_shift", "_to_copy",
    "to", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t", "slice", "select", "index",
    "gather", "scatter", "index_select", "cat", "stack", "split", "chunk", "unbind", "unsqueeze", "squeeze", "clone",
    "copy_", "detach", "arange", "full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "empty", "fill_",
    "masked_fill", "sort", "topk", "argmax", "argmin", "argsort", "embedding", "flip", "roll", "repeat",
    "constant_pad_nd", "lift_fresh", "lift_fresh_copy", "alias", "as_strided", "scalar_tensor", "rsub", "sqrt",
    "reciprocal", "isnan", "isinf", "nonzero", "tril", "triu", "bucketize", "searchsorted", "add_", "sub_", "mul_",
    "div_", "_local_scalar_dense",
))  # fmt: skip
BOUNDED = ("sigmoid", "tanh", "erf")  # kernels give these to a unit in the last place of their range, not of each result
SUMS = ("sum", "mean", "var", "std", "var_mean", "std_mean", "cumsum", "linalg_vector_norm")
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "dot", "linear", "matmul")
FEW_VALUES = 2**16  # up to here views of weights are kept too
MOST_VALUES = 2**22  # values larger than this are not kept: they would fill the memory and tell nothing new


@dataclass(frozen=True, slots=True)
class Note:
    """One op that eager ran."""

    op: str  # "aten.add.Tensor"
    location: Location
    dtypes: tuple[str, ...]
    terms: int  # how many numbers went into one number of the output, for ops that add up
    values: tuple[Array, ...] = ()
    writes: bool = False  # it changed one of its arguments in place
    reads: tuple[int, ...] = ()  # ids of the tensors it took, to see whether a parameter or buffer was among them
    draws: bool = False  # it takes random numbers from torch's generator
    keys: Array | None = None  # what an op that sorts was given
    takes: tuple[int, ...] = ()  # which earlier ops, by their place on the trace, made or changed what it was given
    scale: float = 0.0  # how large the numbers are that were added up: what is left of them may be far smaller
    size: int = 0  # how many numbers came out
    lost: float = 0.0  # by how much a plain sum is another if taken one number after the other


@dataclass(slots=True)
class EagerTrace:
    """All ops of one call, in order, and what the call returned or raised."""

    notes: list[Note] = field(default_factory=list)
    outputs: tuple[torch.Tensor, ...] = ()
    error: Exception | None = None


def record(module: torch.nn.Module, args: tuple[Any, ...], *, keep: bool = False, prefix: str = "", seed: int = 0) -> EagerTrace:
    """Return the trace of one eager call; with `keep`, the values of every op are on it."""
    trace = EagerTrace()
    names = {id(m): n.removeprefix(prefix.rstrip(".")).lstrip(".") for n, m in module.named_modules()}
    try:
        with _Recorder(trace, names, _storages(module) if keep else None):
            trace.outputs = eager.call(module, args, seed=seed)
    except Exception as error:  # whatever the user's forward raises is told on the trace, not to our caller
        trace.error = error
        # torch.cond, scan and while_loop compile themselves in eager mode and do not bear being watched: then the trace
        # ends there, and the call is made once more in private, without what the compiler remembers of the failure
        with contextlib.suppress(Exception):
            torch.compiler.reset()
            trace.outputs, trace.error = eager.call(module, args, seed=seed), None
    return trace


class _Recorder(Watching):
    def __init__(self, trace: EagerTrace, names: dict[int, str], weights: frozenset[int] | None) -> None:
        super().__init__()
        self.trace, self.names, self.weights = trace, names, weights
        self.makers: dict[int, int] = {}  # memory -> the last op that wrote to it

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        results = [o for o in (out if isinstance(out, tuple | list) else (out,)) if isinstance(o, torch.Tensor)]
        taken = [a for a in args if isinstance(a, torch.Tensor)]
        place = _place(sys._getframe(1), self.names)
        if place is None:  # our own clones before the call
            return out
        results, taken = [[p for t in tensors if (p := _padded(t)) is not None] for tensors in (results, taken)]
        keep = self.weights is not None
        makers = self._makers(args, kwargs) if keep else ()
        values = tuple(array(r).copy() for r in results if self._telling(r)) if keep else ()
        keyed = keep and bool(taken) and op_name(func) in SORTING
        dtypes = tuple(str(r.dtype).removeprefix("torch.") for r in results)
        self.trace.notes.append(
            Note(
                str(func),
                Location(place.file, place.line, place.module_path, op_name(func)),
                dtypes,
                terms(str(func), taken, results),
                values,
                is_mutable(func),
                tuple(id(a) for a in taken),
                torch.Tag.nondeterministic_seeded in func.tags,
                array(taken[0]).copy() if keyed and taken[0].numel() <= MOST_VALUES else None,
                makers,
                _scale(str(func), taken) if keep else 0.0,
                sum(r.numel() for r in results),
                _lost_in_turn(func, args, out) if keep else 0.0,
            )
        )
        self.makers.update((_storage(r), len(self.trace.notes) - 1) for r in results if keep)
        return out

    def _makers(self, args: Any, kwargs: Any) -> tuple[int, ...]:
        given = [t for t in arg_tree_leaves(*args, **(kwargs or {})) if isinstance(t, torch.Tensor)]
        memory = [_storage(t) for t in given if not t.is_nested]
        return tuple(sorted({self.makers[m] for m in memory if m in self.makers}))

    def _telling(self, result: torch.Tensor) -> bool:
        """Return whether a value says anything: a mere view of a large weight does not."""
        if result.numel() > MOST_VALUES:
            return False
        return result.numel() <= FEW_VALUES or _storage(result) not in (self.weights or ())


def _storages(module: torch.nn.Module) -> frozenset[int]:
    return frozenset(_storage(p) for p in module.parameters()) - {0}


def _storage(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's memory, 0 where it has none of its own."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided and not tensor.is_meta else 0


def op_name(func: Any) -> str:
    """Return an op's name without its namespace and overload."""
    return str(func).removeprefix("aten.").split(".")[0]


def place_of(names: dict[int, str]) -> Location | None:
    """Return where the op stands that is being dispatched; None outside of the model's call. For a dispatch mode to ask."""
    return _place(sys._getframe(2), names)


def _place(frame: FrameType | None, names: dict[int, str]) -> Location | None:
    """Return the innermost line that the user wrote, else one of a library, and the module being run; None outside the call."""
    library: tuple[str, int] | None = None
    user: tuple[str, int] | None = None
    path: str | None = None
    entered = False
    while frame is not None:
        file = frame.f_code.co_filename
        if path is None and (owner := frame.f_locals.get("self")) is not None and id(owner) in names:
            path = names[id(owner)]
        if file == calls.__file__:
            entered = frame.f_code is calls.called.__code__
            break
        match whose_code.owner(file):
            case "user":
                user = user or (file, frame.f_lineno)
            case "package":
                library = library or (file, frame.f_lineno)
        frame = frame.f_back
    if not entered:
        return None
    spot = user or library
    return Location(spot[0], spot[1], path) if spot else Location(module_path=path)


def _padded(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a nested tensor as a plain one, with zeros where its rows end, as the encoders of torch make of it themselves."""
    if not tensor.is_nested:
        return tensor
    rows = tensor.unbind() if tensor.layout is torch.strided else ()
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True) if rows and rows[0].dim() else None


def terms(op: str, taken: list[torch.Tensor], results: list[torch.Tensor]) -> int:
    """Return how many terms are added up for one number of the output."""
    name = op.removeprefix("aten.").split(".")[0]
    if not taken or not results or not any(r.is_floating_point() or r.is_complex() for r in results):
        return 1
    if name.startswith(("cumsum", "cumprod")):  # of equal numbers, each addition errs to the same side
        return _longest(taken[0]) ** 2
    if "fft" in name:
        # the phases 2 pi k n / N are rounded too, which makes the error grow with N and not with its root
        return int((2 * math.pi * max(_longest(t) for t in taken)) ** 2)
    if name in PRODUCTS:
        matrix = taken[1] if name.startswith("add") or name == "baddbmm" else taken[0]
        return int(matrix.shape[-1]) if matrix.dim() else 1
    if "conv" in name and len(taken) > 1 and taken[1].dim() > 1:
        return int(taken[1][0].numel())
    if name in ("sum", "nansum", "mean") or any(word in name for word in ("loss", "cross_entropy")):
        return max(1, taken[0].numel() // max(1, results[0].numel()))
    if any(word in name for word in _ADDING):
        return max((_longest(t) for t in taken), default=1)
    return 1


def _scale(op: str, taken: list[torch.Tensor]) -> float:
    """Return the size of the numbers that a plain sum, or a sum of products, is made of; 0 for other ops."""
    name = op.removeprefix("aten.").split(".")[0]
    factors = taken[:1] if name in SUMS else taken[-2:] if name in PRODUCTS else taken[:2] if "conv" in name else []
    if not factors or not all(t.is_floating_point() and t.numel() for t in factors):
        return 0.0
    scale = math.prod(_root_mean_square(t.detach()) for t in factors)
    if name.startswith("var"):  # kernels take the mean away before they square, so that only its error is left, and squared
        precision, many = torch.finfo(factors[0].dtype).eps, _longest(factors[0])
        scale = max(scale if "mean" in name else 0.0, scale**2 * precision * many**1.5)
    return scale if math.isfinite(scale) else 0.0


def _lost_in_turn(func: Any, args: tuple[Any, ...], out: Any) -> float:
    other = in_turn(op_name(func), func, args, out)
    apart = (other.double() - out.double()).abs().max().item() if other is not None else 0.0
    return apart if math.isfinite(apart) else 0.0


def _root_mean_square(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(tensor.numel())


_ADDING = (  # words in the names of ops that add up numbers
    "var", "std", "cumsum", "norm", "softmax", "logsumexp", "attention", "transformer", "lstm", "gru", "rnn", "cdist",
    "dist", "prod", "pool", "upsample", "interpolate", "fft", "trapz", "scatter_add", "index_add", "scatter_reduce",
    "index_put", "grid_sampl", "bilinear", "einsum", "cov", "corr", "trace", "_det", "logdet", "inv", "solve", "svd", "eigh",
    "qr", "cholesky",
)  # fmt: skip


def _longest(tensor: torch.Tensor) -> int:
    return max(tensor.shape, default=1)
