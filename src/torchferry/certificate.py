"""The certificate: what was verified, over which ranges, with which tolerances and versions; kept inside the file."""

from __future__ import annotations

import json
import platform
from collections import Counter
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torchferry import intake
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, SESSION_KEY, changes, fingerprint
from torchferry.errors import FileRefused, UsageError
from torchferry.records import Bound, Case, History, Translated, Verified, sizes_shown
from torchferry.records.documents import Certificate
from torchferry.records.findings import SizeGivenUp
from torchferry.saturation.asked import features

PACKAGES = ("torchferry", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "numpy")


def certificate(history: History) -> dict[str, Any]:
    """Return what was shown of a verified case, as plain data."""
    case = history.best
    verified, signature = case.answer(Verified), case.answer(Bound).signature
    return {
        "dims": {d.name: str(d) for d in signature.dims},
        "inputs": {spec.name: [spec.dtype, list(spec.shape)] for spec in signature.inputs},
        "fixed": dict(signature.fixed),
        "conditions": list(signature.conditions),
        "given_up": list(given_up(case)),
        "ranges": {name: list(span) for name, span in case.ranges.items()},
        "trials": dict(Counter(t.outcome for t in case.trials)),
        "sizes_tried": {name: list(sizes) for name, sizes in sizes_shown(case.trials).items()},
        "values": values_tried(case),
        "tolerance": asdict(verified.tolerance),
        "coverage": asdict(verified.coverage),
        "worst": max((t.worst for t in case.trials if t.outcome == "agree"), default=0.0),
        "repairs": [f"{r.code}: {r.title}" for r in history.kept],
        "notes": [note for step in case.steps if step.stage in ("verify", "generate") for note in step.notes],
        "versions": versions(),
        "instruction_sets": list(features()),
    }


def given_up(case: Case) -> tuple[str, ...]:
    """Return what the file does not take though the model does, and why, size by size."""
    told = []
    for finding in case.findings(SizeGivenUp):
        where = str(finding.location or "")
        declared = f"fixed at {finding.now}" if finding.fixed else f"only {finding.now}"
        cause = " at ".join(part for part in (finding.code, where) if part) or finding.why
        told.append(f"{finding.dim} is {declared}; the model takes {finding.was} ({cause})")
    return tuple(told)


def values_tried(case: Case) -> str:
    """Return where the values of the trials came from."""
    if callable(case.job.domain):
        return "as given by the caller, by a function that makes the inputs"
    spans = [f"{name} {low:g}..{high:g}" for name, (low, high) in (case.job.domain or {}).items()]
    drawn = "drawn from the example, the model and the file"
    return f"as given by the caller: {', '.join(spans)}; others {drawn}" if spans else drawn


def versions() -> dict[str, str]:
    """Return the versions of everything that had a hand in a file."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def seal(path: Path, history: History) -> None:
    """Write the certificate into the metadata of a file. The graph and the weights stay byte for byte as verified."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    if disabled := history.best.answer(Translated).settings.get("disabled"):
        _set(model, SESSION_KEY, {"disabled_optimizers": list(disabled)})
    _set(model, CERTIFICATE_KEY, {**certificate(history), "fingerprint": fingerprint(model, path.parent)})
    path.write_bytes(model.SerializeToString())


def _set(model: Any, key: str, value: dict[str, Any]) -> None:
    entry = next((p for p in model.metadata_props if p.key == key), None) or model.metadata_props.add()
    entry.key, entry.value = key, json.dumps(value)


@dataclass(frozen=True, slots=True)
class FoundCertificate:
    """The certificate inside a file as plain data, and why it does not speak for the file as it is now (empty: it does)."""

    data: dict[str, Any]
    objections: tuple[str, ...] = ()


def read(path: str | Path) -> FoundCertificate:
    """Return the certificate inside a file, held against the file as it is. Whatever is wrong with either is an objection.

    Raises UsageError only where there is no file to look at.
    """
    import onnx

    if not Path(path).is_file():
        raise UsageError(f"there is no file `{path}`")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception:  # protobuf raises its own kinds for anything that is not a model
        return FoundCertificate(
            {}, (f"it cannot be read as an ONNX model, and has no certificate; see `torchferry check {path}`",)
        )
    text = next((p.value for p in model.metadata_props if p.key == CERTIFICATE_KEY), None)
    if text is None:
        return FoundCertificate(
            {}, ("it carries no certificate: it was not exported by torchferry, or has been rewritten since",)
        )
    try:
        data = intake.parsed(text, CERTIFICATE_KEY)
        told = intake.made(Certificate, data, CERTIFICATE_KEY)
    except FileRefused as error:
        return FoundCertificate({}, (f"its certificate is malformed ({error.code}): {error.why}",))
    try:
        now = fingerprint(model, Path(path).parent)
    except (ValueError, KeyError, OSError) as error:  # weights that are not there, or sizes and types that no tensor has
        return FoundCertificate(data, (f"its weights cannot be held against the certificate: {error}",))
    return FoundCertificate(data, changes(asdict(told.fingerprint), now))
