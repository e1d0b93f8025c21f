"""Make the table of what each onnxruntime release implements, from the wheels themselves.

    python benchmarks/release_kernels.py [release ...]

Downloads each wheel (for this Python; releases before 1.19 need 3.11) into build/releases, unpacks it, and asks it: for its
kernels by the private API that 1.16 and later have, for the newest opset and IR version by offering one that does not exist.
A release without that API is asked which of the next one's own operators it does not know.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from torchferry.releases import kernels

RELEASES = (
    *("1.15.1", "1.16.3", "1.17.3", "1.18.1", "1.19.2", "1.20.1", "1.21.1", "1.22.1", "1.23.2"),
    *("1.24.1", "1.25.0", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1"),
)
BUILD = Path(__file__).parent.parent / "build" / "releases"
ASK = """
import base64, json, re, sys
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

def told(model, pattern):
    try:
        onnxruntime.InferenceSession(base64.b64decode(model), providers=["CPUExecutionProvider"])
    except Exception as error:
        return int(re.search(pattern, str(error))[1])

def unknown(model):
    try:
        onnxruntime.InferenceSession(base64.b64decode(model), providers=["CPUExecutionProvider"])
    except Exception as error:
        return "is not a registered function/op" in str(error)

models = json.loads(sys.stdin.read())
ir = told(models["ir"], r"max supported IR version: (\\d+)")
opset = told(models["opset"][str(ir)], r"is till opset (\\d+)")
ml = told(models["ml"], r"domain ai.onnx.ml is till opset (\\d+)")
kernels = [
    (k.domain, k.op_name, *k.version_range, {n: list(t) for n, t in k.type_constraints.items()})
    for k in state.get_all_opkernel_def() if k.provider == "CPUExecutionProvider"
] if hasattr(state, "get_all_opkernel_def") else None
absent = [name for name, model in models["operators"].items() if unknown(model)]
print(json.dumps({"limits": [opset, ir, ml], "kernels": kernels, "absent": absent}))
"""


def python_path(release: str) -> str:
    """Return the PYTHONPATH under which this Python imports that release, downloaded where it is not there yet."""
    numpy, folder = BUILD / "numpy", BUILD / release
    if not numpy.exists():  # releases before 1.19 were built for numpy 1, and later ones take it too
        _pip("install", "--target", str(numpy), "numpy<2")
    if not folder.exists():
        _pip("download", "--no-deps", "--dest", str(BUILD / "wheels"), f"onnxruntime=={release}")
        (wheel,) = (BUILD / "wheels").glob(f"onnxruntime-{release}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return os.pathsep.join([str(folder), str(numpy)])


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", arguments[0], "--quiet", *arguments[1:]], check=True)


def asked(release: str, operators: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Return the limits and the kernels (None where it has no API for them) of one release, and which operators it lacks."""
    answer = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": python_path(release)},
        input=json.dumps({**_models(), "operators": {"::".join(o): _calling(*o) for o in operators}}),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def _models() -> dict[str, Any]:
    """Return models of versions that do not exist, each to be refused in words that tell the newest that does."""
    identity = onnx.helper.make_node("Identity", ["x"], ["y"])
    opsets = {str(ir): _encoded(identity, ir, ("", 99)) for ir in range(3, 99)}
    return {"ir": _encoded(identity, 99, ("", 1)), "opset": opsets, "ml": _encoded(identity, 8, ("", 15), ("ai.onnx.ml", 99))}


def _calling(domain: str, op_type: str) -> str:
    """Return a model that calls an operator: whether it does so rightly is of no matter, an unknown one is refused before."""
    return _encoded(onnx.helper.make_node(op_type, ["x"], ["y"], domain=domain), 8, ("", 15), (domain, 1))


def _encoded(node: onnx.NodeProto, ir: int, *imports: tuple[str, int]) -> str:
    values = [onnx.helper.make_tensor_value_info(n, 1, [1]) for n in "xy"]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in imports])
    made.ir_version = ir
    return base64.b64encode(made.SerializeToString()).decode()


def main(releases: list[str]) -> int:
    by_release, limits, absent = {}, {}, {}
    for release in sorted(releases or RELEASES, key=lambda r: int(r.split(".")[1]), reverse=True):
        minor, before = int(release.split(".")[1]), by_release[min(by_release)] if by_release else {}
        answer = asked(release, [key for key in before if key[0].startswith("com.")])
        limits[minor] = tuple(answer["limits"])
        if answer["kernels"] is None:
            absent[minor] = answer["absent"]
        else:
            by_release[minor] = _by_operator(answer["kernels"])
        print(f"onnxruntime {release}: opset {limits[minor][0]}, IR {limits[minor][1]}, {len(answer['kernels'] or ())} kernels")
    kernels.FILE.write_text(kernels.packed(by_release, limits, absent), encoding="utf-8")
    print(f"wrote {kernels.FILE} ({kernels.FILE.stat().st_size:,} bytes)")
    return 0


def _by_operator(entries: list[Any]) -> dict[tuple[str, str], tuple[kernels.Kernel, ...]]:
    found: dict[tuple[str, str], list[kernels.Kernel]] = {}
    for domain, op_type, first, last, constraints in entries:
        found.setdefault((domain, op_type), []).append((first, last, {n: tuple(t) for n, t in constraints.items()}))
    return {key: tuple(value) for key, value in found.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
