"""Whether onnxruntime's own optimiser is at fault, and which of its rewrites."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from torchferry import eager
from torchferry.records import Fault, Location
from torchferry.verify.fingerprint import Index
from torchferry.verify.inside import expose, opened
from torchferry.verify.judge import Bench, Judged, differences
from torchferry.verify.provenance import place_of_node
from torchferry.verify.tape import record

# The names by which onnxruntime's optimisers can be switched off; it ignores unknown ones without a word.
OPTIMISERS = (
    "Pad_Fusion", "Level1_RuleBasedTransformer", "Level2_RuleBasedTransformer", "ConstantFolding",
    "CommonSubexpressionElimination", "ConstantSharing", "MatMulAddFusion", "ReshapeFusion", "TransposeOptimizer",
    "GeluFusionL1", "GeluFusionL2", "GeluFusion", "LayerNormFusionL1", "LayerNormFusionL2", "LayerNormFusion",
    "SimplifiedLayerNormFusion", "SkipLayerNormFusion", "EmbedLayerNormFusion", "AttentionFusion", "BiasGeluFusion",
    "FastGeluFusion", "QuickGeluFusion", "BiasSoftmaxFusion", "BiasDropoutFusion", "MatMulScaleFusion",
    "MatmulTransposeFusion", "ConvActivationFusion", "ConvAddActivationFusion", "GemmActivationFusion",
    "DynamicQuantizeMatMulFusion", "MatMulIntegerToFloatFusion", "NchwcTransformer", "NhwcTransformer",
    "GatherToSplitFusion", "GatherToSliceFusion", "IdenticalChildrenConsolidation", "DoubleQDQPairsRemover",
    "PropagateCastOps", "MatMulActivationFusion", "ConvBNFusion", "ConvMulFusion", "ConvAddFusion",
    "MatMul_BatchNormalization_Fusion", "EliminateIdentity", "EliminateSlice", "UnsqueezeElimination",
    "EliminateDropout", "ExpandElimination", "CastElimination", "CastChainElimination", "PreShapeNodeElimination",
    "NoopElimination", "DivMulFusion", "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion",
    "ReluClipFusion", "GroupQueryAttentionFusion", "LabelEncoderFusion", "MatMulNBitsFusion",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Blamed:
    """The optimisers without which the file is right, and the place of what they rewrote."""

    optimisers: tuple[str, ...]
    location: Location | None


def blame_runtime(bench: Bench, failing: Judged) -> Blamed | None:
    """Return what to blame when the file is right with onnxruntime's optimisations off; None when it is wrong then too."""
    if not _right_with(bench, failing, level="none"):
        return None
    guilty = _bisect(OPTIMISERS, lambda names: _right_with(bench, failing, disabled=list(names)))
    return Blamed(guilty, _place(bench, failing))


def _right_with(bench: Bench, failing: Judged, **options: object) -> bool:
    key = bench.sides.worker.open(bench.sides.file.path, **options)
    if isinstance(key, Fault):
        return False
    got = bench.sides.run(failing.args, key)
    bench.sides.worker.close(key)
    return not isinstance(got, Fault) and not differences(bench, failing.want, got)[0]


def _bisect(names: Sequence[str], right: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """Return the one name whose removal makes it right, found by halving; nothing when no single name does."""
    if not right(names):
        return ()
    while len(names) > 1:
        half = names[: len(names) // 2]
        names = half if right(half) else names[len(names) // 2 :]
        if not right(names):
            return ()
    return tuple(names)


def _place(bench: Bench, failing: Judged) -> Location | None:
    """Return the place of a value whose mere exposure makes the output right: it stands inside the wrong rewrite."""
    path = Path(bench.sides.file.path)
    model = onnx.load(str(path), load_external_data=False)
    names = [o for n in model.graph.node for o in n.output if o]
    with tempfile.TemporaryDirectory(prefix=".torchferry-") as folder:

        def right(some: Sequence[str]) -> bool:
            key = bench.sides.worker.open(expose(model, some, path, Path(folder) / "exposed.onnx"))
            if isinstance(key, Fault):
                return False
            got = bench.sides.run(failing.args, key)
            bench.sides.worker.close(key)
            return not isinstance(got, Fault) and not differences(bench, failing.want, got)[0]

        found = _bisect(names, right)
    node = next((n for n in model.graph.node if found and found[0] in n.output), None)
    if node is None:
        return None
    place = place_of_node(node, bench.sides.file.provenance)
    return place if place.line else _by_value(bench, failing, found[0]) or place


def _by_value(bench: Bench, failing: Judged, name: str) -> Location | None:
    tape = record(eager.fresh(bench.sides.bound.module), failing.args, keep=True, prefix=bench.sides.bound.prefix)
    with opened(bench.sides) as inside:
        values = inside if isinstance(inside, Fault) else inside.values(failing.args)
    if isinstance(values, Fault):
        return None
    index = Index({name: values[name]})
    return next((n.location for n in tape.notes if any(index.find(v) for v in n.values)), None)
