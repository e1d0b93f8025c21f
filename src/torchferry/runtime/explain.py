"""An error of a session, explained: the file is checked as `torchferry check` does it, and the diagnoses are read out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchferry.escape import prose
from torchferry.files import workspace
from torchferry.records import Budget, Diagnosis, Job

FROM_BYTES = (
    "  note: the model was given as bytes, which have no folder: its weights are looked for in the working directory, or where "
    "the session option `session.model_external_initializers_file_folder_path` says"
)
SECONDS = 60.0  # for an explanation, if nobody says otherwise
LARGEST = 2 << 30  # a larger file is not opened a second time only to explain an error


def explain(source: Any, feed: Mapping[str, Any] | None, seconds: float = SECONDS) -> str:
    """Return the diagnoses of a file, and of a feed for it, in words; nothing where there are none."""
    try:
        found = diagnoses(source, feed, seconds)
        bytes_too = [FROM_BYTES] if isinstance(source, bytes) and any(d.slug == "weights-file-missing" for d in found) else []
        return "\n".join([*(_line(d) for d in found), *bytes_too])
    except Exception:  # an explanation that fails must not take the place of the error itself
        return ""


def diagnoses(source: Any, feed: Mapping[str, Any] | None, seconds: float) -> list[Diagnosis]:
    """Return what is wrong with a file (a path, or its bytes), and with a feed for it, in so many seconds."""
    from torchferry.pipeline import run

    with workspace() as folder:
        path = Path(source) if not isinstance(source, bytes) else folder / "given.onnx"
        if isinstance(source, bytes):
            path.write_bytes(source)
        if path.is_file() and path.stat().st_size > LARGEST:
            return []
        job = Job(onnx=path, feeds=(feed,) if feed is not None else (), workspace=folder, budget=Budget(time_limit=seconds))
        return [d for d in run(job).diagnoses if d.severity == "error"]


def _line(diagnosis: Diagnosis) -> str:
    where = f" [{diagnosis.location}]" if diagnosis.location.line else ""
    advice = f"\n  help: {diagnosis.help}" if diagnosis.help else ""
    return prose(f"{diagnosis.code}: {diagnosis.message}{where}{advice}")
