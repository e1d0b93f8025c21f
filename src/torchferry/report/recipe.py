"""The result as a recipe: a short script that makes the same file again, its repairs included."""

from __future__ import annotations

from torchferry.escape import line
from torchferry.records import Job
from torchferry.report.view import Reportable


def script(result: Reportable) -> str:
    """Return a script that repeats an export. `model`, `args` and `kwargs` are the user's own; all else is written out."""
    job = result.history.best.job
    options = [f"    {name}={value!r}," for name, value in _options(job)]
    edits = [f"        torchferry.Edit({e.stage!r}, {e.name!r}, {dict(e.params)!r})," for e in job.edits]
    titles = {str(r.edit): line(f"  # {r.code}: {r.title}") for r in result.history.kept}
    edits = [made + titles.get(str(edit), "") for made, edit in zip(edits, job.edits, strict=True)]
    return "\n".join(
        [
            "import torchferry",
            "",
            "# model, args and kwargs: as you passed them",
            f"result = torchferry.export(model, args, {str(result.path or 'model.onnx')!r}, kwargs=kwargs,",
            *options,
            *(["    edits=[", *edits, "    ],"] if edits else []),
            '    repair="off",  # the repairs are those above',
            ")",
            "print(result)",
            "",
        ]
    )


def _options(job: Job) -> list[tuple[str, object]]:
    """Return the words of the job that are not the defaults."""
    said: list[tuple[str, object]] = [
        ("input_names", list(job.input_names) if job.input_names else None),
        ("output_names", list(job.output_names) if job.output_names else None),
        ("opset_version", job.opset),
        ("dynamic_shapes", job.dynamic_shapes),
        ("dynamic_axes", job.dynamic_axes),
        ("ranges", dict(job.ranges) or None),
        ("domain", job.domain),
        ("tolerance", (job.tolerance.rtol, job.tolerance.atol) if job.tolerance else None),
        ("target", job.target),
    ]
    return [(name, value) for name, value in said if value is not None]
