"""The element type of every value, worked out from the schemas; and the nodes whose inputs contradict each other.

Unlike onnx.shape_inference this goes on past a contradiction, says which inputs are in conflict, and knows com.microsoft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from torchferry.check.reading import graph, schemas
from torchferry.check.types import dtypes

# operators whose output type is named by an attribute: (attribute, the type when it is absent; None: as the input)
BY_ATTRIBUTE: dict[str, tuple[str, str | None]] = {
    "Cast": ("to", None),
    "ConstantOfShape": ("value", "float"),
    "EyeLike": ("dtype", None),
    "RandomNormal": ("dtype", "float"),
    "RandomUniform": ("dtype", "float"),
    "RandomNormalLike": ("dtype", None),
    "RandomUniformLike": ("dtype", None),
    "Multinomial": ("dtype", "int32"),
    "Bernoulli": ("dtype", None),
    "SequenceEmpty": ("dtype", "float"),
    "BlackmanWindow": ("output_datatype", "float"),
    "HannWindow": ("output_datatype", "float"),
    "HammingWindow": ("output_datatype", "float"),
    "QuantizeLinear": ("output_dtype", ""),
    "DequantizeLinear": ("output_dtype", ""),
}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A node whose inputs must be of one type and are not: {input name: type} in order, and the types that it takes."""

    place: graph.NodePlace
    types: dict[str, str]
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unfit:
    """An input of a type that the operator does not take at all."""

    place: graph.NodePlace
    value: str
    parameter: str
    type: str
    allowed: tuple[str, ...]


@dataclass(slots=True)
class Types:
    """What is known: {value: word} ("float", "int64"), what contradicts, and which declarations are wrong."""

    of: dict[str, str] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    unfit: list[Unfit] = field(default_factory=list)
    declared: dict[str, tuple[str, str, graph.NodePlace]] = field(default_factory=dict)  # value: (declared, real, its maker)
    branches: list[tuple[graph.NodePlace, int, list[str]]] = field(default_factory=list)  # If, output index, the types
    carried: list[tuple[graph.NodePlace, int, list[str]]] = field(default_factory=list)  # Loop or Scan, input index, the types


def infer(model: onnx.ModelProto) -> Types:
    """Return the types of all values of a model, as far as they follow."""
    found = Types()
    versions = {("" if o.domain in schemas.STANDARD else o.domain): o.version for o in model.opset_import}
    _graph(model.graph, found, versions, None)
    return found


def _graph(part: onnx.GraphProto, found: Types, versions: dict[str, int], owner: onnx.NodeProto | None) -> None:
    for tensor in part.initializer:
        found.of[tensor.name] = dtypes.word(tensor.data_type)
    for value in part.input:
        if (word := declared(value)) is not None:
            found.of[value.name] = word
    said = {v.name: w for v in (*part.output, *part.value_info) if (w := declared(v)) is not None}
    for node in part.node:
        place = graph.NodePlace(node, part, owner)
        for subgraph in graph.subgraphs(node):
            _loop_inputs(node, subgraph, found)
            _graph(subgraph, found, versions, node)
        _node(place, found, versions, said)


def declared(value: onnx.ValueInfoProto) -> str | None:
    """Return the element type that a tensor is declared to have."""
    kind = value.type
    if not kind.HasField("tensor_type") or not kind.tensor_type.elem_type:
        return None
    return dtypes.word(kind.tensor_type.elem_type)


def _loop_inputs(node: onnx.NodeProto, body: onnx.GraphProto, found: Types) -> None:
    if node.op_type == "Loop":
        for inner, outer in zip(body.input[2:], node.input[2:], strict=False):
            if outer in found.of and declared(inner) is None:
                found.of[inner.name] = found.of[outer]


def _node(place: graph.NodePlace, found: Types, versions: dict[str, int], said: dict[str, str]) -> None:
    node = place.node
    domain = "" if node.domain in schemas.STANDARD else node.domain
    schema = schemas.schema(node.op_type, versions.get(domain, 1), domain) or _foreign(node.op_type, domain)
    plain = _results(place, schema, found)  # also where subgraphs tell the types: a condition must be a truth value
    results = _subgraph_results(place, found, said) or {**_told_by_onnx(node, schema, found), **plain}
    for output in node.output:
        real = results.get(output)
        if real is None:
            if output in said:  # the schema does not tell: believe the declaration
                found.of[output] = said[output]
            continue
        if output in said and said[output] != real:
            found.declared[output] = (said[output], real, place)
        found.of[output] = real


def _told_by_onnx(node: onnx.NodeProto, schema: Any, found: Types) -> dict[str, str]:
    """Return what onnx's own inference tells of operators of ai.onnx.ml: a classifier's labels are what its attributes list."""
    if node.domain != "ai.onnx.ml" or schema is None:
        return {}
    known = {v: onnx.helper.make_tensor_type_proto(dtypes.ENUM[found.of[v]], None) for v in node.input if v in found.of}
    try:
        made = onnx.shape_inference.infer_node_outputs(schema, node, known)
    except onnx.shape_inference.InferenceError:  # the node contradicts its operator, which others look at
        return {}
    return {name: dtypes.word(kind.tensor_type.elem_type) for name, kind in made.items() if kind.tensor_type.elem_type}


def _foreign(op_type: str, domain: str) -> Any | None:
    if not domain:
        return None
    from torchferry.foreign import onnxruntime as ort

    return ort.schema(domain, op_type)


def _results(place: graph.NodePlace, schema: Any | None, found: Types) -> dict[str, str]:
    node = place.node
    bound: dict[str, str] = {}
    if schema is None:
        return {}
    given = [(p, v) for p, v in _formal(schema.inputs, node.input) if p is not None and v in found.of]
    together: dict[str, dict[str, str]] = {}
    for parameter, value in given:
        if _homogeneous(parameter):
            together.setdefault(_variable(parameter), {})[value] = found.of[value]
            bound.setdefault(_variable(parameter), found.of[value])
    settled: set[str] = set()  # a type that is not taken gives way to one beside it that is: one problem, not two
    for variable, seen in together.items():
        if len(set(seen.values())) > 1 and not variable.startswith("tensor("):
            allowed = _words(_allowed(schema, variable))
            found.conflicts.append(Conflict(place, seen, allowed))
            settled |= seen.keys() if set(seen.values()) & set(allowed) else set()
    for parameter, value in given:
        if value not in settled:
            _check_allowed(place, schema, parameter, value, found)
    return _outputs(node, schema, bound)


def bindings(node: onnx.NodeProto, version: int, known: Mapping[str, str]) -> dict[str, str]:
    """Return which type each type variable of a node's operator stands for, given the types of its inputs."""
    schema = schemas.schema(node.op_type, version, node.domain) or _foreign(node.op_type, node.domain)
    if schema is None:
        return {}
    bound: dict[str, str] = {}
    for parameter, value in _formal(schema.inputs, node.input):
        if parameter is not None and value in known and _homogeneous(parameter):
            bound.setdefault(_variable(parameter), known[value])
    _outputs(node, schema, bound)
    return bound


def _outputs(node: onnx.NodeProto, schema: Any, bound: dict[str, str]) -> dict[str, str]:
    if not node.output:
        return {}
    if node.op_type == "Constant":
        return {node.output[0]: _constant_type(node)}
    results = {}
    for parameter, output in _formal(schema.outputs, node.output):
        if parameter is None or not output:
            continue
        variable = _variable(parameter)
        if variable in bound:
            results[output] = bound[variable]
        elif (plain := _plain(schema, variable)) is not None:
            results[output] = plain
    if node.op_type in BY_ATTRIBUTE and node.domain in schemas.STANDARD and (word := _by_attribute(node, bound)) is not None:
        results[node.output[0]] = word
        bound.setdefault("T2", word)
    return results


def _by_attribute(node: onnx.NodeProto, bound: dict[str, str]) -> str | None:
    name, default = BY_ATTRIBUTE[node.op_type]
    value = graph.attributes(node).get(name)
    if isinstance(value, onnx.TensorProto):
        return dtypes.word(value.data_type)
    if isinstance(value, int) and value:
        return dtypes.word(value)
    if default == "":
        return None
    return default if default is not None else bound.get("T1", bound.get("T"))


def _constant_type(node: onnx.NodeProto) -> str:
    for name, value in graph.attributes(node).items():
        if name == "value":
            return dtypes.word(value.data_type)
        return {"value_int": "int64", "value_ints": "int64", "value_string": "string", "value_strings": "string"}.get(
            name, "float"
        )
    return "float"


def _subgraph_results(place: graph.NodePlace, found: Types, said: dict[str, str]) -> dict[str, str]:
    """Return the types that If, Loop and Scan give: those of their branches' outputs, where these agree."""
    node = place.node
    bodies = list(graph.subgraphs(node))
    if not bodies or node.op_type not in ("If", "Loop", "Scan"):
        return {}
    skip = 1 if node.op_type == "Loop" else 0
    if node.op_type != "If":
        _carried(place, bodies[0], found)
    results: dict[str, str] = {}
    for index, output in enumerate(node.output):
        words = [found.of.get(b.output[index + skip].name) for b in bodies if index + skip < len(b.output)]
        known = [w for w in words if w is not None]
        if len(set(known)) > 1:
            found.branches.append((place, index, known))
            known = [said[output]] if output in said else known
        if known:
            results[output] = known[0]
    return results


def states(node: onnx.NodeProto, body: onnx.GraphProto) -> list[tuple[int, int, int]]:
    """Return where what a Loop or Scan carries from turn to turn stands: in its inputs, in its body's inputs and outputs."""
    if node.op_type == "Loop":
        return [(i, i, i - 1) for i in range(2, min(len(node.input), len(body.input), len(body.output) + 1))]
    scanned = graph.attributes(node).get("num_scan_inputs")
    count = len(node.input) - scanned if isinstance(scanned, int) and scanned > 0 else 0
    return [(i, i, i) for i in range(min(count, len(body.input), len(body.output)))]


def _carried(place: graph.NodePlace, body: onnx.GraphProto, found: Types) -> None:
    """Note what begins as one type and comes out of a turn as another."""
    for outer, inner, result in states(place.node, body):
        words = [found.of.get(n) for n in (place.node.input[outer], body.input[inner].name, body.output[result].name)]
        if len(known := {w for w in words if w is not None}) > 1:
            found.carried.append((place, outer, sorted(known)))


def _formal(parameters: Any, names: Any) -> list[tuple[Any, str]]:
    """Pair each given name with the parameter of the schema that it stands for; the last one may be variadic."""
    last = parameters[-1] if parameters else None
    return [(parameters[i] if i < len(parameters) else last, n) for i, n in enumerate(names) if n]


def _variable(parameter: Any) -> str:
    return str(getattr(parameter, "type_str", None) or getattr(parameter, "typeStr", ""))


def _homogeneous(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_homogeneous", getattr(parameter, "isHomogeneous", True)))


def _allowed(schema: Any, variable: str) -> tuple[str, ...]:
    for constraint in schema.type_constraints:
        if (getattr(constraint, "type_param_str", "")) == variable:
            return tuple(constraint.allowed_type_strs)
    return (variable,) if variable.startswith("tensor(") else ()


def _plain(schema: Any, variable: str) -> str | None:
    """Return the one type that a variable can have."""
    allowed = _allowed(schema, variable)
    return (
        allowed[0].removeprefix("tensor(").removesuffix(")") if len(allowed) == 1 and allowed[0].startswith("tensor(") else None
    )


def _check_allowed(place: graph.NodePlace, schema: Any, parameter: Any, value: str, found: Types) -> None:
    word = found.of[value]
    allowed = _allowed(schema, _variable(parameter))
    if allowed and f"tensor({word})" not in allowed and any(a.startswith("tensor(") for a in allowed):
        found.unfit.append(Unfit(place, value, str(parameter.name), word, _words(allowed)))


def _words(types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(t.removeprefix("tensor(").removesuffix(")") for t in types)
