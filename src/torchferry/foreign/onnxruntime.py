"""Door to onnxruntime: what it takes, its sessions, and the body of the process that opens unknown models (`serve`).

Relies on two functions of its private module `onnxruntime.capi.onnxruntime_pybind11_state`, `get_all_opkernel_def` and
`get_all_operator_schema`, which some builds lack: then its kernels are not known. And on the words in which it refuses a model
of too new a version, as there is no other way to ask for its limits.
Should they move: `releases/` has the kernels of past releases, and their limits.

That process starts by importing this file, so what only its parent needs is imported where it is used.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torchferry.releases.kernels import Kernel

CPU = ["CPUExecutionProvider"]
LEVELS = ("all", "basic", "extended", "none")  # "all" is onnxruntime's own default


def version() -> str:
    """Return the installed onnxruntime's version."""
    import onnxruntime

    return str(onnxruntime.__version__)


def session(
    path: str | Path | bytes,
    *,
    level: str = "all",
    disabled: Sequence[str] = (),
    config: Mapping[str, str] | None = None,
    threads: int = 0,
    data_folder: str | None = None,
    libraries: Sequence[str] = (),
    optimised_to: Path | None = None,
) -> Any:
    """Return an in-process onnxruntime.InferenceSession on the CPU, silent on stderr.

    `libraries` hold operators of custom domains. `data_folder` is where external weights lie, when that is not beside the file.
    `optimised_to` is where onnxruntime writes the graph that it really runs.
    """
    import onnxruntime

    if data_folder is not None:
        config = {**(config or {}), "session.model_external_initializers_file_folder_path": data_folder}
        path = path if isinstance(path, bytes) else Path(path).read_bytes()

    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = {
        "all": levels.ORT_ENABLE_ALL,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "basic": levels.ORT_ENABLE_BASIC,
        "none": levels.ORT_DISABLE_ALL,
    }[level]
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if optimised_to is not None:
        options.optimized_model_filepath = str(optimised_to)
    for library in libraries:
        options.register_custom_ops_library(library)
    for key, value in (config or {}).items():
        options.add_session_config_entry(key, value)
    source = path if isinstance(path, bytes) else str(path)
    return onnxruntime.InferenceSession(
        source, options, providers=CPU, disabled_optimizers=list(disabled) or None, enable_fallback=0
    )


def options() -> Any:
    """Return onnxruntime's own session options, as it makes them."""
    import onnxruntime

    return onnxruntime.SessionOptions()


def silent_options() -> Any:
    """Return the same without a log: what goes wrong is raised, and the log writes a file's names to the terminal as they are."""
    made = options()
    made.log_severity_level = 4
    return made


def session_as_asked(source: Any, *arguments: Any, **more: Any) -> Any:
    """Return onnxruntime's own InferenceSession with just these arguments; on the CPU where no provider is named."""
    import onnxruntime

    given, providers, provider_options = arguments
    providers = [providers] if isinstance(providers, str) else providers  # onnxruntime would take each letter for one
    providers = providers or CPU
    if providers == CPU:  # it would try the same once more, after it has printed its error, names of the file and all
        more = {"enable_fallback": 0} | more
    return onnxruntime.InferenceSession(source, given, providers, provider_options, **more)


@cache
def limits() -> tuple[int, int]:
    """Return the newest IR version and opset that the installed onnxruntime takes, by asking it: there is no API."""
    ir = _told(_one_node_model(ir_version=99, opset=1), r"max supported IR version: (\d+)")
    return ir, _told(_one_node_model(ir_version=ir, opset=99), r"is till opset (\d+)")


@cache
def lays_out_in_blocks() -> bool:
    """Whether onnxruntime has convolutions for this processor that lay their weights out in blocks, by asking it likewise."""
    import onnx

    made = onnx.helper
    value = [made.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 64, 1, 1]) for n in "xy"]
    kernel = onnx.numpy_helper.from_array(np.ones((64, 64, 1, 1), np.float32), "w")
    graph = made.make_graph([made.make_node("Conv", ["x", "w"], ["y"])], "g", value[:1], value[1:], [kernel])
    model = made.make_model(graph, opset_imports=[made.make_opsetid("", 18)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "optimised.onnx"
        session(model.SerializeToString(), optimised_to=written)
        return b"nchwc" in written.read_bytes()


def _told(model: bytes, pattern: str) -> int:
    from torchferry.foreign.moved import moved

    limits = "the words for the versions that it takes"
    try:
        session(model)
    except Exception as error:
        if match := re.search(pattern, str(error)):
            return int(match[1])
        raise moved("onnxruntime", limits, error) from error
    raise moved("onnxruntime", limits, "it opened a model of a version that does not exist")


def _one_node_model(ir_version: int, opset: int) -> bytes:
    import onnx

    value = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", value[:1], value[1:])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    made.ir_version = ir_version
    return bytes(made.SerializeToString())


def run(opened: Any, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None, options: Any = None) -> list[Any]:
    """Return what a session gives; bfloat16 and float8, which its own `run` does not take or give, included."""
    if not any(_unknown_to_numpy(getattr(v, "dtype", None)) for v in feeds.values()) and not _gives_unknown(opened):
        return list(opened.run(outputs, dict(feeds), options))
    values = opened.run_with_ort_values(outputs, {k: ort_value(v) for k, v in feeds.items()}, options)
    return [array_of(v) for v in values]


def said(text: str) -> str:
    """Return onnxruntime's words without its own source paths, codes and signatures."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"Load model from .*? failed:", "", text)
    text = re.sub(r"/onnxruntime_src/\S+ .*?\)(?: const)?(?: \[with [^\]]*\])? ", "", text)
    text = re.sub(r"\b\w+\.(?:cc|h):\d+ \w+ ", "", text)
    return text.strip()[:600]


def _unknown_to_numpy(dtype: Any) -> bool:
    return getattr(dtype, "name", "").startswith(("bfloat16", "float8"))


def _gives_unknown(opened: Any) -> bool:
    return any(o.type.startswith(("tensor(bfloat16", "tensor(float8")) for o in opened.get_outputs())


def ort_value(value: Any) -> Any:
    """Return an array as onnxruntime's own kind of value."""
    import onnx
    import onnxruntime

    if type(value).__name__ == "OrtValue":
        return value
    array = np.asarray(value, order="C")  # ascontiguousarray would give a single number an axis
    if not _unknown_to_numpy(array.dtype):
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    bits = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def array_of(value: Any) -> Any:
    """Return onnxruntime's own kind of value as an array."""
    import ctypes

    import onnx

    if not value.is_tensor() or not value.data_type().startswith(("tensor(bfloat16", "tensor(float8")):
        return value.numpy() if value.is_tensor() else value
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.element_type())
    count = int(np.prod(value.shape(), dtype=np.int64))
    raw = ctypes.string_at(value.data_ptr(), count * dtype.itemsize) if count else b""
    return np.frombuffer(raw, dtype).reshape(value.shape()).copy()


@cache
def kernels() -> dict[tuple[str, str], tuple[Kernel, ...]]:
    """Return what the installed runtime's CPU provider implements, by (domain, operator); empty where it cannot be asked."""
    state = _private_state("get_all_opkernel_def")
    found: dict[tuple[str, str], list[Kernel]] = {}
    for k in state.get_all_opkernel_def() if state else ():
        if k.provider == "CPUExecutionProvider":
            constraints = {name: tuple(types) for name, types in k.type_constraints.items()}
            found.setdefault((k.domain, k.op_name), []).append((*k.version_range, constraints))
    return {key: tuple(value) for key, value in found.items()}


@cache
def schema(domain: str, op_type: str) -> Any | None:
    """Return the installed runtime's newest schema of one of its own operators, or None."""
    state = _private_state("get_all_operator_schema")
    found = [s for s in state.get_all_operator_schema() if (s.domain, s.name) == (domain, op_type)] if state else []
    return max(found, key=lambda s: s.since_version, default=None)


def _private_state(name: str) -> Any | None:
    """Return onnxruntime's private module if it still has a function of that name."""
    from onnxruntime.capi import onnxruntime_pybind11_state

    return onnxruntime_pybind11_state if hasattr(onnxruntime_pybind11_state, name) else None


def quantised(model: Any, bits: int, block: int, spared: Sequence[str] = ()) -> Any:
    """Return an onnx.ModelProto whose constant matrices are in `bits` bits (MatMulNBits), a scale for each `block` weights.

    spared: nodes that are left as they are.
    """
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:  # on import the quantiser sets up the root logger, which is the user's
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
    logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.WARNING)
    # accuracy level 4: the kernel computes in int8; zero points cost eight bits no time, and bring them nearer by a twentieth
    quantiser = MatMulNBitsQuantizer(
        model, bits=bits, block_size=block, is_symmetric=bits < 8, accuracy_level=4, nodes_to_exclude=list(spared)
    )
    quantiser.process()
    return quantiser.model.model


def serve(handle: int, memory_limit: int | None) -> None:
    """Answer a Worker's questions until it hangs up, each with (what stopped it, or None; the answer): a child's whole life."""
    import signal
    import threading

    from torchferry.foreign.posix import pipe_of

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it ends us
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    pipe = pipe_of(handle)
    sessions: dict[str, Any] = {}
    while True:
        try:
            verb, key, *rest = pipe.recv()
        except EOFError:
            return
        fault: tuple[str, str] | None = None
        answer: Any = None
        try:
            if verb == "open":
                sessions[key] = session(rest[0], **rest[1])
            elif verb == "inputs":
                answer = [(i.name, i.type, tuple(i.shape)) for i in sessions[key].get_inputs()]
            elif verb == "version":
                answer = version()
            elif verb == "evaluate":
                answer = _evaluated(*rest)
            elif verb == "run":
                answer = run(sessions[key], rest[0], rest[1])
                answer = answer if rest[2] else []
            else:
                sessions.pop(key, None)
            if memory_limit is not None and (large := _bytes(answer)) > memory_limit // 4:  # it is copied, here and there
                raise MemoryError(f"the values of this run cannot be handed over: buffer of size {large}")
        except Exception as error:  # onnxruntime may raise anything about a model
            fault, answer = (type(error).__name__, str(error)), None
        try:
            pipe.send((fault, answer))
        except MemoryError:
            pipe.send((("MemoryError", "bad allocation: the values of this run cannot be handed over"), None))


def _bytes(answer: Any) -> int:
    return sum(getattr(value, "nbytes", 0) for value in answer) if isinstance(answer, list) else 0


def _end_with(parent: int) -> None:
    """End this process once its parent has died: a model that never ends would run on where nobody waits for it."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _evaluated(path: str, feeds: Mapping[str, Any]) -> list[Any]:
    """Return what onnx's reference evaluator, written in numpy from the standard, gives for a model that no runtime need know."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(path).run(None, dict(feeds)))
