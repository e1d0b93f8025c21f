"""The graph passes that mend a file, each by the class of the edit that it carries out.

Each takes an onnx.ModelProto, changes it in place, and is told by the edit all that it would have to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import onnx

from torchferry.check.passes import casts, decompose, names, shapes, signs, versions, weave
from torchferry.edits import check as edits
from torchferry.errors import UsageError

Kind = TypeVar("Kind", bound=edits.GraphPass)
Pass = Callable[[onnx.ModelProto, Any], None]


def _by(kind: type[Kind], carry_out: Callable[[onnx.ModelProto, Kind], None]) -> tuple[type[edits.GraphPass], Pass]:
    """Return a row of the table, in which the function is one for this very edit."""
    return kind, carry_out


PASSES = dict(
    [
        _by(edits.RelocateData, names.relocate),
        _by(edits.SetIr, versions.set_ir),
        _by(edits.StampOpset, versions.stamp),
        _by(edits.ConvertOpset, versions.convert),
        _by(edits.DropImports, versions.drop_imports),
        _by(edits.ModerniseOldForms, versions.modernise),
        _by(edits.UniqueNodeNames, names.unique_node_names),
        _by(edits.RenameShadowed, names.rename_shadowed),
        _by(edits.DropRepeatedNodes, names.drop_repeated_nodes),
        _by(edits.RenameOutput, names.rename_output),
        _by(edits.CastOperands, casts.cast_operands),
        _by(edits.CastBranches, casts.cast_branches),
        _by(edits.CastCarried, casts.cast_carried),
        _by(edits.CastAround, casts.cast_around),
        _by(edits.Retype, casts.retype),
        _by(edits.DeclareTypes, casts.declare_types),
        _by(edits.Decompose, decompose.decompose),
        _by(edits.InlineBranch, decompose.inline_branch),
        _by(edits.TransposeOperand, shapes.transpose_operand),
        _by(edits.FreeSizes, shapes.free_sizes),
        _by(edits.RewriteConstants, shapes.rewrite_constants),
        _by(edits.ZeroMaskedRows, shapes.zero_masked_rows),
        _by(edits.FlipWeights, signs.flip_weights),
    ]
)


def apply(model: onnx.ModelProto, edit: edits.CheckEdit) -> None:
    """Carry out an edit on the model."""
    if not isinstance(edit, edits.GraphPass) or type(edit) not in PASSES:
        raise UsageError(f"no graph pass carries out `{edit}`; there are: {', '.join(kind.name for kind in PASSES)}")
    PASSES[type(edit)](model, edit)
    weave.tidy(model)
