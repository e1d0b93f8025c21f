"""The certificate: what was verified, over which ranges, with which tolerances and versions; kept inside the file."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torchferry.errors import UsageError
from torchferry.records import Case, History
from torchferry.saturation.asked import features

KEY = "pkg.torchferry.certificate"
SESSION_KEY = "pkg.torchferry.session"  # what a session must set for the file to be right; torchferry's own sessions read it
PACKAGES = ("torchferry", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "numpy")


def certificate(history: History) -> dict[str, Any]:
    """Return what was shown of a verified case, as plain data."""
    case = history.best
    verified = case.value("verify")
    signature = case.value("inputs").signature
    return {
        "dims": {d.name: str(d) for d in signature.dims},
        "inputs": {spec.name: [spec.dtype, list(spec.shape)] for spec in signature.inputs},
        "fixed": dict(signature.fixed),
        "conditions": list(signature.conditions),
        "given_up": list(given_up(case)),
        "ranges": {name: list(span) for name, span in verified.ranges.items()},
        "trials": dict(Counter(t.outcome for t in verified.trials)),
        "sizes_tried": _sizes_tried(case),
        "tolerance": {"rtol": verified.tolerance.rtol, "atol": verified.tolerance.atol, "because": verified.tolerance.because},
        "worst": max((t.worst for t in verified.trials if t.outcome == "agree"), default=0.0),
        "repairs": [f"{r.code}: {r.title}" for r in history.kept],
        "versions": versions(),
        "instruction_sets": list(features()),
    }


def given_up(case: Case) -> tuple[str, ...]:
    """Return what the file does not take though the model does, and why, size by size."""
    told = []
    for finding in case.findings("size-given-up"):
        facts, where = finding.facts, str(finding.location or "")
        declared = f"fixed at {facts['now']}" if facts["fixed"] else f"only {facts['now']}"
        cause = " at ".join(part for part in (facts["code"], where) if part) or facts["why"]
        told.append(f"{facts['dim']} is {declared}; the model takes {facts['was']} ({cause})")
    return tuple(told)


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
    _set(model, KEY, {**certificate(history), "fingerprint": fingerprint(model)})
    if disabled := history.best.value("translate").settings.get("disabled"):
        _set(model, SESSION_KEY, {"disabled_optimizers": list(disabled)})
    path.write_bytes(model.SerializeToString())


def _set(model: Any, key: str, value: dict[str, Any]) -> None:
    entry = next((p for p in model.metadata_props if p.key == key), None) or model.metadata_props.add()
    entry.key, entry.value = key, json.dumps(value)


def fingerprint(model: Any) -> str:
    """Return what tells a graph and its weights from others; weights in a file of their own count by their places and lengths."""
    import onnx

    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    for tensor in graph.initializer:  # a file may be copied under another name, and its weights with it
        for entry in tensor.external_data:
            entry.value = "" if entry.key == "location" else entry.value
    return hashlib.sha256(graph.SerializeToString(deterministic=True)).hexdigest()


def read(path: str | Path) -> dict[str, Any]:
    """Return the certificate inside a file, with `changed`: whether the file is another one than was certified."""
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf raises its own kinds for anything that is not a model
        raise UsageError(f"`{path}` cannot be read as an ONNX model; `torchferry check {path}` says what it is") from error
    for entry in model.metadata_props:
        if entry.key == KEY:
            found = dict(json.loads(entry.value))
            return {**found, "changed": found.get("fingerprint") not in (None, fingerprint(model))}
    raise UsageError(f"`{path}` carries no certificate: it was not exported by torchferry, or has been rewritten since")


def _sizes_tried(case: Case) -> dict[str, list[int]]:
    tried: dict[str, set[int]] = {}
    for trial in case.value("verify").trials:
        if trial.outcome == "agree":
            for name, size in trial.sizes.items():
                tried.setdefault(name, set()).add(size)
    return {name: sorted(sizes) for name, sizes in tried.items()}
