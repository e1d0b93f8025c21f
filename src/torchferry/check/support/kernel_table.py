"""Does a release implement this node, for these types? Read from its table of kernels, as the release itself would look it up.

A release that is not installed cannot be asked; its table can. What has no kernel but is defined in terms of other operators
is written out, as the runtime does it, and these are looked up instead.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx.inliner

from torchferry.check.reading import graph, schemas
from torchferry.check.support.node_probe import alone
from torchferry.check.types.type_inference import bindings, infer
from torchferry.releases.kernels import Kernel

Kernels = Mapping[tuple[str, str], tuple[Kernel, ...]]
DEEPEST = 4  # an operator written out may again be one to be written out; the standard's go two deep
WRITTEN_AS = {"CastLike": "Cast"}  # with the other operand's type for its attribute; the inliner needs to know that type


class KernelTable:
    """Answers for a release that is not installed, and remembers the answers. The same questions as `NodeProber` takes.

    `nested` says whether the release writes out operators inside of those that it has written out.
    """

    def __init__(self, kernels: Kernels, model: onnx.ModelProto, nested: bool = True) -> None:
        self._kernels = kernels
        self._deepest = DEEPEST if nested else 1
        self._model = model
        self._known: dict[bytes, bool] = {}

    def lacks(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool:
        """Say whether the release has no implementation of the node for these types; what is not known fits."""
        versions = versions_of(self._model)
        if opset is not None:
            versions[""] = opset
        if implements(self._kernels, node, types, versions):
            return False
        if list(graph.subgraphs(node)) or not _is_function(node, versions):
            return True
        single = alone(node, types, self._model, opset)
        key = single.SerializeToString(deterministic=True)
        if key not in self._known:
            self._known[key] = self._lacks_parts(single, self._deepest)
        return self._known[key]

    def takes(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool:
        """Say whether the release has an implementation of the node for these types, as far as a table can tell."""
        return not self.lacks(node, types, opset)

    def _lacks_parts(self, single: onnx.ModelProto, depth: int) -> bool:
        """Whether some operator is lacking when those without a kernel are written out."""
        types, versions = infer(single).of, versions_of(single)
        missing = [p.node for p in graph.nodes_of(single.graph) if not implements(self._kernels, p.node, types, versions)]
        if not missing:
            return False
        if depth == 0 or not all(_is_function(n, versions) for n in missing):
            return True
        wanted = sorted({(n.domain, n.op_type) for n in missing})
        try:
            written = onnx.inliner.inline_selected_functions(single, wanted, inline_schema_functions=True)
        except Exception:  # the inliner raises plain RuntimeErrors for bodies that it cannot build: the release could not either
            return True
        return self._lacks_parts(written, depth - 1)


def versions_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version stamped for each domain, the standard's under the empty name."""
    return {("" if o.domain in schemas.STANDARD else o.domain): o.version for o in model.opset_import}


def implements(kernels: Kernels, node: onnx.NodeProto, types: Mapping[str, str], versions: Mapping[str, int]) -> bool:
    """Say whether a table has a kernel for a node; what is not known of its types fits any."""
    if node.op_type == "Constant" and node.domain in schemas.STANDARD:  # folded away, so it has no kernel
        return True
    domain = "" if node.domain in schemas.STANDARD else node.domain
    version = versions.get(domain, 1)
    op_type = WRITTEN_AS.get(node.op_type, node.op_type) if not domain else node.op_type
    since = schemas.since(op_type, min(version, schemas.NEWEST) if not domain else version, domain) or 1
    bound = bindings(node, version, types)
    return any(
        first <= since <= last and all(_takes(allowed, bound.get(name)) for name, allowed in constraints.items())
        for first, last, constraints in kernels.get((domain, op_type), ())
    )


def _takes(allowed: tuple[str, ...], word: str | None) -> bool:
    """Whether a kernel takes a type; what is not known fits, and float16 is cast to float by the runtime itself."""
    return word is None or f"tensor({word})" in allowed or (word == "float16" and "tensor(float)" in allowed)


def _is_function(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    """Whether the standard defines an operator in terms of others, under this version of it."""
    if node.domain not in schemas.STANDARD:
        return False
    schema = schemas.schema(node.op_type, versions.get("", 1))
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)
