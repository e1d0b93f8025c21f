"""What torchferry wrote into a file's metadata, read back through the door for data; whatever else stands there is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchferry import intake
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, SESSION_KEY
from torchferry.errors import FileRefused
from torchferry.records.documents import Certificate, SessionMetadata
from torchferry.records.findings import DocumentRefused

KINDS: dict[str, type[Any]] = {SESSION_KEY: SessionMetadata, CERTIFICATE_KEY: Certificate}


def settings_in(told: str | None) -> dict[str, Any]:
    """Return what a session must set for a file to be right, by what its metadata tells. Raises FileRefused for anything else."""
    if not told:
        return {}
    asked = intake.told(SessionMetadata, told, SESSION_KEY)
    return {"disabled_optimizers": asked.disabled_optimizers}


def refused(model: Any) -> Iterator[DocumentRefused]:
    """Yield what a model (an onnx.ModelProto) tells in torchferry's name that torchferry does not write."""
    for entry in model.metadata_props:
        if entry.key in KINDS:
            try:
                intake.told(KINDS[entry.key], entry.value, entry.key)
            except FileRefused as error:
                yield DocumentRefused(error.document, error.why, harmless=entry.key == CERTIFICATE_KEY)
