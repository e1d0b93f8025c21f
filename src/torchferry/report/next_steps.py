"""What to do next: commands and a few lines of Python that can be copied as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath

from torchferry.escape import shell
from torchferry.report.view import Tensor, View

LONGEST = 50_000  # characters: the feeds of some hundred inputs
EXAMPLE_SIZE = 2  # for sizes that move: the smallest that is not the special case 1


WEIGHTS = "weights = {i.name: model.state_dict()[i.name].numpy() for i in session.get_inputs() if i.name in model.state_dict()}"


@dataclass(frozen=True, slots=True)
class Next:
    """One thing to do next."""

    what: str
    code: str
    language: str = "shell"


def following(view: View) -> tuple[Next, ...]:
    """Return what the reader may want to do now, most wanted first; not what names of a million letters make too long to copy."""
    return tuple(step for step in _following(view) if len(step.code) <= LONGEST)


def _following(view: View) -> tuple[Next, ...]:
    codes = list(dict.fromkeys(p.code for p in (*view.problems, *view.mended) if p.code and p.severity != "note"))
    explain = [Next("what it means", "\n".join(f"torchferry explain {shell(code)}" for code in codes[:3]))] if codes else []
    if view.kind == "check" and not view.ok and view.repairs and not view.mended:
        mend = " ".join(map(shell, ("torchferry", "check", view.path, *view.asked, "-o", _beside(view.path))))
        return (Next("write the mended file", mend), *explain)
    if not view.ok or view.kind == "check":
        return tuple(explain)
    generates = view.kind == "export" and any(spent.stage == "generate" for spent in view.stages)
    written = f'torchferry generate {shell(str(PurePath(view.path).parent))} "Hello"'
    run = Next("run it", written) if generates else Next("run it", snippet(view), "python")
    # the certificate of the exact file is not that of its rounded copy, nor of one with other inputs
    certified = view.kind == "export" and not view.rounded and not view.weights
    proof = [Next("what was verified", f"torchferry verify --certificate {shell(view.path)}")] if certified else []
    return (run, *proof, *explain) if view.path else tuple(explain)


def _beside(path: str) -> str:
    """Return a name for the mended file, next to the one it was made from."""
    return str(PurePath(path).with_suffix(".mended.onnx"))


def snippet(view: View) -> str:
    """Return a few lines of Python that run the file; numpy has no bfloat16, and onnxruntime takes none from Python."""
    by_numpy = not any(t.dtype == "bfloat16" for t in view.inputs)
    feeds = [f"{_literal(t.name)}: {_array(view, t, by_numpy=by_numpy)}" for t in view.inputs]
    listed = ", ".join(feeds) if len(feeds) < 2 else "\n    " + ",\n    ".join(feeds) + ",\n"
    fed = f"{{{listed}}}"
    if view.weights == "must be fed":
        fed = f"weights | {fed}"
    lines = [
        "import numpy as np, onnxruntime as ort" if by_numpy else "import torch, torchferry as ort",
        *_session(view),
        *([WEIGHTS] if view.weights == "must be fed" else []),
        f"outputs = session.run(None, {fed})",
    ]
    return "\n".join(lines)


def _session(view: View) -> list[str]:
    """Return the lines that open the file, with the libraries that it needs."""
    if not view.libraries:
        return [f"session = ort.InferenceSession({_literal(view.path)})"]
    registered = [f"options.register_custom_ops_library({_literal(library)})" for library in view.libraries]
    return ["options = ort.SessionOptions()", *registered, f"session = ort.InferenceSession({_literal(view.path)}, options)"]


def _literal(text: str) -> str:
    """Return a text as Python writes it down."""
    return json.dumps(text) if text.isascii() else repr(text)


def _array(view: View, tensor: Tensor, *, by_numpy: bool) -> str:
    sizes = [_size(view, s) for s in tensor.shape]
    shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"
    fill = "ones" if tensor.dtype == "bool" or any(word in tensor.name for word in ("mask", "length")) else "zeros"
    dtype = tensor.dtype if tensor.dtype.isidentifier() else "float32"  # a report that was read may say anything
    return f'np.{fill}({shape}, "{dtype}")' if by_numpy else f"torch.{fill}({shape}, dtype=torch.{dtype})"


def _size(view: View, size: str) -> int:
    """Return a number for a size of the file: itself, or one that its dims allow."""
    values = {m.name: _allowed(m.low, m.high, m.multiple_of) for m in view.moving if not m.follows}
    if size in values:
        return values[size]
    from torchferry.inputs.sizes.expressions import value  # which evaluates no Python: a report may come from a file

    try:
        return value(size, values)
    except (ValueError, KeyError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        return EXAMPLE_SIZE


def _allowed(low: int, high: int | None, multiple_of: int) -> int:
    wanted = max(low, EXAMPLE_SIZE if high is None else min(high, EXAMPLE_SIZE))
    return -(-wanted // multiple_of) * multiple_of
