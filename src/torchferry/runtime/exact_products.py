"""Products of 8-bit integers made right while a file is opened, where this processor would cut their sums off.

The file stays as it is. What is opened instead reads the same weights 128 away, as `torchferry check` writes it on request; and
that is said, by the code of the diagnosis, since it is slower, and since other programs get other numbers from the file.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from torchferry.errors import Worded
from torchferry.saturation.asked import exact
from torchferry.saturation.product import BLOCKS, QDQ, Product, every_kind


class ProcessorWarning(Worded, UserWarning):
    """A file computes something else on this processor than on others."""


def exact_products(source: Any) -> bytes | None:
    """Return the graph of a file (a path, or its bytes) with products that come out right here; None where its own do.

    Weights that lie in files of their own still lie there.
    """
    from torchferry.check.reading.operator_names import operator_names

    if not _cut_off_here(operator_names(source)):
        return None
    import onnx

    from torchferry.check import passes
    from torchferry.check.support import products
    from torchferry.edits.check import FlipWeights

    try:
        model = onnx.load_model_from_string(source if isinstance(source, bytes) else Path(source).read_bytes())
        wrong = products.cut_off(model, Path.cwd() if isinstance(source, bytes) else Path(source).parent)
    except Exception:  # no ONNX file: the session says what it makes of it
        return None
    if not wrong:
        return None
    mended = [w for w in wrong if products.mendable(w.product)]
    _tell(source, wrong[0].product, len(wrong), len(wrong) - len(mended))
    if not mended:
        return None
    passes.apply(model, FlipWeights(tuple(w.place.label for w in mended)))
    return bytes(model.SerializeToString())


def _tell(source: Any, product: Product, count: int, left: int) -> None:
    from torchferry.catalogue import find

    name = None if isinstance(source, bytes) else os.fspath(source)
    done = f"{left} of them come out wrong" if left else "here they are computed in a slower way that is right"
    mend = f"; `torchferry check {name} -o FILE` writes one that needs none of it" if name else ""
    many = f"{count} products" if count > 1 else "a product"
    words = f"{f'`{name}`' if name else 'the model'} has {many} whose sums this processor cuts off ({product}); {done}{mend}"
    warnings.warn(f"{find('sums-cut-off').code}: {words}", ProcessorWarning, stacklevel=5)


def _cut_off_here(named: frozenset[str]) -> bool:
    """Say whether this processor cuts off any sum that these operators may make."""
    from torchferry.check.support.products import INSIDE

    inner = {INSIDE[key][0][1] for key in INSIDE if key[1] in named}
    kinds = [p for p in every_kind() if p.op in named | inner or (p.domain == QDQ and "DequantizeLinear" in named)]
    blocks = [Product(*BLOCKS, "int8", "uint8", size) for size in (16, 32, 64, 128) if BLOCKS[1] in named]
    return not all(exact(p) for p in (*kinds, *blocks))
