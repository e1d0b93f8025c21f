"""Whether onnxruntime's own optimiser is at fault, and which of its rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from torchferry import eager
from torchferry.files import workspace
from torchferry.records import Fault, Location, Translated
from torchferry.verify.explain.fingerprint import Index
from torchferry.verify.explain.provenance import place_of_node
from torchferry.verify.judge.trial import Bench, Judged, differences
from torchferry.verify.run.eager_trace import record
from torchferry.verify.run.intermediates import expose, opened
from torchferry.worker import Worker

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
RUNS = 3  # a kernel that leaves part of its result unwritten is right by luck in fresh memory, not a second time


@dataclass(frozen=True, slots=True)
class Blamed:
    """The optimisers without which the file is right, and the place of what they rewrote."""

    optimisers: tuple[str, ...]
    location: Location | None
    value: str = ""  # that stands inside the rewrite


def blame_runtime(bench: Bench, failing: Judged) -> Blamed | None:
    """Return what to blame when the file is right with onnxruntime's optimisations off; None when it is wrong then too."""
    sides = bench.sides

    def right(key: str) -> bool:
        runs = [sides.run(failing.args, key) for _ in range(RUNS)]
        return all(not isinstance(got, Fault) and not differences(bench, failing.want, got)[0] for got in runs)

    blamed = _blamed(sides.worker, sides.file, right)
    if blamed is None or (blamed.location is not None and blamed.location.line):
        return blamed
    return replace(blamed, location=_by_value(bench, failing, blamed.value) or blamed.location)


def blame_opening(worker: Worker, file: Translated) -> Blamed | None:
    """Return what to blame when the file opens only with onnxruntime's optimisations off; None when it does not open then."""
    return _blamed(worker, file, lambda key: True)


def _blamed(worker: Worker, file: Translated, right: Callable[[str], bool]) -> Blamed | None:
    def fine(path: Path, **options: object) -> bool:
        key = worker.open(path, **options)
        if isinstance(key, Fault):
            return False
        told = right(key)
        worker.close(key)
        return told

    path = Path(file.path)
    if not fine(path, level="none"):
        return None
    guilty = _bisect(OPTIMISERS, lambda names: fine(path, disabled=list(names)))
    value, place = _exposed(file, fine)
    return Blamed(guilty, place, value)


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


def _exposed(file: Translated, fine: Callable[[Path], bool]) -> tuple[str, Location | None]:
    """Return a value whose mere exposure makes all well, so that it stands inside the wrong rewrite, and its place."""
    path = Path(file.path)
    model = onnx.load(str(path), load_external_data=False)
    names = [o for n in model.graph.node for o in n.output if o]
    with workspace() as folder:
        exposed = folder / "exposed.onnx"
        found = _bisect(names, lambda some: fine(expose(model, some, path, exposed)))
    node = next((n for n in model.graph.node if found and found[0] in n.output), None)
    return ("", None) if node is None else (found[0], place_of_node(node, file.provenance))


def _by_value(bench: Bench, failing: Judged, name: str) -> Location | None:
    if not name:
        return None
    trace = record(eager.fresh(bench.sides.bound.module), failing.args, keep=True, prefix=bench.sides.bound.prefix)
    with opened(bench.sides) as inside:
        values = inside if isinstance(inside, Fault) else inside.values(failing.args)
    if isinstance(values, Fault):
        return None
    index = Index({name: values[name]})
    return next((n.location for n in trace.notes if any(index.find(v) for v in n.values)), None)
