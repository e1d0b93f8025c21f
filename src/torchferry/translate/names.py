"""The words of the file: inputs, outputs, sizes, weights and nodes named as the user knows them, never `s43`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import onnx_ir as ir
import sympy
from onnx_ir.passes import common

from torchferry.records import Signature, Size, TensorSpec
from torchferry.translate.node_lines import strip

WORD = re.compile(r"[^\W\d]\w*")
PLAIN = re.compile(r"[\w\s+*()-]+")  # what sympy can read back as it was printed


def rename(model: ir.Model, program: Any, signature: Signature, outputs: Sequence[str], prefix: str) -> None:
    """Give inputs, outputs, sizes and weights of `model` their names, in place."""
    symbols = dim_names(program, signature)
    _rename_values(model, signature, outputs, prefix)
    _rename_sizes(model, symbols, _spellings(signature))
    for value, spec in zip(required(model.graph), signature.inputs, strict=True):
        value.shape = ir.Shape(_as_promised(value.shape, spec.shape))
    common.NameFixPass()(model)


def required(graph: ir.Graph) -> list[ir.Value]:
    """Return the inputs that must be fed: one that has a value in the file need not be."""
    return [value for value in graph.inputs if value.name not in graph.initializers]


def specs(values: Sequence[ir.Value]) -> tuple[TensorSpec, ...]:
    """Return name, dtype and sizes of graph inputs or outputs."""
    return tuple(TensorSpec(str(v.name), dtype_name(v.dtype), tuple(_sizes(v))) for v in values)


def dtype_name(dtype: ir.DataType | None) -> str:
    """Return "float32", "int64", "bool", "bfloat16", ... for ONNX's own name."""
    if dtype is None:
        return "unknown"
    return "string" if dtype == ir.DataType.STRING else str(dtype.numpy())


def dim_names(program: Any, signature: Signature) -> dict[str, str]:
    """Return the user's name for each of torch's symbols, read off the inputs' shapes."""
    names: dict[str, str] = {}
    for node_shape, spec in zip(_input_shapes(program), signature.inputs, strict=False):
        for size, word in zip(node_shape, spec.shape, strict=False):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if isinstance(expression, sympy.Symbol) and isinstance(word, str) and WORD.fullmatch(word):
                names.setdefault(str(expression), word)
    return names


def _input_shapes(program: Any) -> Iterator[Sequence[Any]]:
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        if isinstance(name, str) and name in placeholders:
            yield tuple(getattr(placeholders[name].meta.get("val"), "shape", ()))


def _rename_values(model: ir.Model, signature: Signature, outputs: Sequence[str], prefix: str) -> None:
    graph = model.graph
    common.OutputFixPass()(model)  # an output that is an input, or another output, gets a value of its own
    taken = {spec.name for spec in signature.inputs} | set(outputs)
    for value in list(graph.initializers.values()):
        wanted = strip(str(value.name), prefix)
        if wanted in taken:  # a parameter may be called like an input
            wanted = f"{wanted}.value"
        if wanted != value.name and wanted not in graph.initializers:
            del graph.initializers[str(value.name)]
            value.name = wanted
            graph.initializers[wanted] = value
    _make_room(model, taken)
    for value, spec in zip(required(graph), signature.inputs, strict=True):
        value.name = spec.name
    for value, name in zip(graph.outputs, outputs, strict=True):
        value.name = name


def _make_room(model: ir.Model, taken: set[str]) -> None:
    """Move inner values out of the way of the names that inputs and outputs will have."""
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for value in node.outputs:
            if value.name in taken:
                value.name = f"{value.name}_inner"


def _rename_sizes(model: ir.Model, symbols: Mapping[str, str], spellings: Mapping[str, str]) -> None:
    words = dict(symbols)
    for value in _all_values(model):
        if value.shape is None or value.shape.is_static():
            continue
        value.shape = ir.Shape([_word(d, words, spellings) for d in value.shape], frozen=False)


def _word(size: int | ir.SymbolicDim, words: dict[str, str], spellings: Mapping[str, str]) -> int | str | None:
    if isinstance(size, int) or size.value is None:
        return size if isinstance(size, int) else None
    for symbol in re.findall(r"(?<!\w)[suz]u?f?\d+(?!\w)", size.value):
        if symbol not in words:  # a size that only the data decides
            words[symbol] = f"dynamic_{sum(w.startswith('dynamic_') for w in words.values())}"
    text = WORD.sub(lambda m: words.get(m[0], m[0]), size.value)
    plain = canonical(text)
    return spellings.get(plain, plain)


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Return one spelling for a size that may be written in several ways; as it is if it is more than sums and products."""
    if not PLAIN.fullmatch(text):
        return text
    symbols = {word: sympy.Symbol(word, integer=True) for word in WORD.findall(text)}
    try:
        return str(sympy.sympify(text, locals=symbols))
    except (sympy.SympifyError, TypeError, AttributeError):
        return text


def _spellings(signature: Signature) -> dict[str, str]:
    """Return the user's own spelling of each size expression, by its canonical one."""
    return {canonical(size): size for spec in signature.inputs for size in spec.shape if isinstance(size, str)}


def _as_promised(shape: ir.Shape | None, promised: Sequence[Size]) -> list[int | str | None]:
    """Return the sizes that an input declares: the promise where it is symbolic, a number only where capture fixed it."""
    traced = list(shape) if shape is not None else [None] * len(promised)
    sizes: list[int | str | None] = []
    for got, want in zip(traced, promised, strict=False):
        sizes.append(want if isinstance(want, str) and not isinstance(got, int) else got if isinstance(got, int) else want)
    sizes += [d if isinstance(d, int) else d.value if d is not None else None for d in traced[len(promised) :]]
    return sizes


def _all_values(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.inputs
    yield from model.graph.initializers.values()
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        yield from node.outputs


def _sizes(value: ir.Value) -> Iterator[Size]:
    for size in value.shape or ():
        yield size if isinstance(size, int) else (size.value or "?")
