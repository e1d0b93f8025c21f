"""What to do next: commands and a few lines of Python that can be copied as they are."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import PurePath

from torchferry.report.view import Tensor, View

EXAMPLE_SIZE = 2  # for sizes that move: the smallest that is not the special case 1


@dataclass(frozen=True, slots=True)
class Next:
    """One thing to do next."""

    what: str
    code: str
    language: str = "shell"


def following(view: View) -> tuple[Next, ...]:
    """Return what the reader may want to do now, most wanted first."""
    codes = list(dict.fromkeys(p.code for p in (*view.problems, *view.mended) if p.code and p.severity != "note"))
    explain = [Next("what it means", "\n".join(f"torchferry explain {code}" for code in codes[:3]))] if codes else []
    if view.kind == "check" and not view.ok and view.repairs and not view.mended:
        mend = shlex.join(("torchferry", "check", view.path, *view.asked, "-o", _beside(view.path)))
        return (Next("write the mended file", mend), *explain)
    if not view.ok or view.kind == "check":
        return tuple(explain)
    generates = any(t.name.startswith("past_key_values.") for t in view.inputs) and view.kind == "export"
    written = f'torchferry generate {shlex.quote(str(PurePath(view.path).parent))} "Hello"'
    run = Next("run it", written) if generates else Next("run it", snippet(view), "python")
    certified = view.kind == "export" and not view.rounded  # the certificate of the exact file is not that of its rounded copy
    proof = [Next("what was verified", f"torchferry verify --certificate {shlex.quote(view.path)}")] if certified else []
    return (run, *proof, *explain) if view.path else tuple(explain)


def _beside(path: str) -> str:
    """Return a name for the mended file, next to the one it was made from."""
    return str(PurePath(path).with_suffix(".mended.onnx"))


def snippet(view: View) -> str:
    """Return a few lines of Python that run the file; numpy has no bfloat16, and onnxruntime takes none from Python."""
    by_numpy = not any(t.dtype == "bfloat16" for t in view.inputs)
    feeds = [f'"{t.name}": {_array(view, t, by_numpy=by_numpy)}' for t in view.inputs]
    listed = ", ".join(feeds) if len(feeds) < 2 else "\n    " + ",\n    ".join(feeds) + ",\n"
    lines = [
        "import numpy as np, onnxruntime as ort" if by_numpy else "import torch, torchferry as ort",
        *_session(view),
        f"outputs = session.run(None, {{{listed}}})",
    ]
    return "\n".join(lines)


def _session(view: View) -> list[str]:
    """Return the lines that open the file, with the libraries that it needs."""
    if not view.libraries:
        return [f"session = ort.InferenceSession({json.dumps(view.path)})"]
    registered = [f"options.register_custom_ops_library({json.dumps(library)})" for library in view.libraries]
    return ["options = ort.SessionOptions()", *registered, f"session = ort.InferenceSession({json.dumps(view.path)}, options)"]


def _array(view: View, tensor: Tensor, *, by_numpy: bool) -> str:
    sizes = [_size(view, s) for s in tensor.shape]
    shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"
    fill = "ones" if tensor.dtype == "bool" or any(word in tensor.name for word in ("mask", "length")) else "zeros"
    return f'np.{fill}({shape}, "{tensor.dtype}")' if by_numpy else f"torch.{fill}({shape}, dtype=torch.{tensor.dtype})"


def _size(view: View, size: str) -> int:
    """Return a number for a size of the file: itself, or one that its dims allow."""
    if size.isdigit():
        return int(size)
    values = {m.name: _allowed(m.low, m.high, m.multiple_of) for m in view.moving if not m.follows}
    if size in values:
        return values[size]
    import sympy

    made = sympy.sympify(size, locals={name: sympy.Symbol(name) for name in values})
    return int(made.subs(values))


def _allowed(low: int, high: int | None, multiple_of: int) -> int:
    wanted = max(low, EXAMPLE_SIZE if high is None else min(high, EXAMPLE_SIZE))
    return -(-wanted // multiple_of) * multiple_of
