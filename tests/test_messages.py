"""What others' errors mean: provoked from the real tools where that is cheap, in their words where it is not."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import torchferry
from torchferry import catalogue
from torchferry.messages import explained
from torchferry.messages.explained import MECHANISMS

CODES = {e.code for e in catalogue.load()}


def file(*nodes: Any, kind: int = TensorProto.FLOAT, opset: int = 17, ir: int = 8, dims: Any = ("n", 4), **weights: Any) -> bytes:
    stored = [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()]
    ends = [helper.make_tensor_value_info("x", kind, dims)], [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(list(nodes), "g", *ends, stored)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir).SerializeToString())


def session(made: bytes) -> Any:
    return onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])


def relu() -> Any:
    return session(file(helper.make_node("Relu", ["x"], ["y"])))


def x(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def reshaped() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    session(file(node, s=np.array([2, 4], np.int64))).run(None, {"x": x(3, 4)})


def looked_up() -> None:
    node = helper.make_node("Gather", ["t", "x"], ["y"])
    made = file(node, kind=TensorProto.INT64, t=np.zeros((50, 2), np.float32))
    session(made).run(None, {"x": np.full((1, 4), 77)})


class Branch(torch.nn.Module):
    def forward(self, v: torch.Tensor) -> torch.Tensor:
        return v * 2 if v.sum() > 0 else v


class Fixed(torch.nn.Module):
    def forward(self, v: torch.Tensor) -> torch.Tensor:
        return v.reshape(3, 4) * 2


class Opaque:
    pass


class Takes(torch.nn.Module):
    def forward(self, v: torch.Tensor, other: Any) -> torch.Tensor:
        return v


def exported(model: torch.nn.Module, *args: Any, **more: Any) -> None:
    torch.export.export(model, args, strict=False, **more)


def traced() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.jit.trace(Branch(), torch.ones(2), check_trace=False)
    raise next(w.message for w in told if isinstance(w.message, torch.jit.TracerWarning))


PROVOKED: dict[str, tuple[str, Callable[[], Any]]] = {
    "another name": ("input names differ from the model's", lambda: relu().run(None, {"z": x(1, 4)})),
    "nothing fed": ("input names differ from the model's", lambda: relu().run(None, {})),
    "another type": ("input dtype differs from the model's", lambda: relu().run(None, {"x": x(1, 4, dtype=np.float64)})),
    "another size": ("input shape differs from the model's", lambda: relu().run(None, {"x": x(1, 5)})),
    "another rank": ("input shape differs from the model's", lambda: relu().run(None, {"x": x(4)})),
    "a list": ("input is no array", lambda: relu().run(None, {"x": torch.ones(1, 4)})),
    "no file": ("file absent", lambda: onnxruntime.InferenceSession("not/there.onnx")),
    "no model": ("file is damaged, or no ONNX file", lambda: session(b"<html>not a model</html>")),
    "IR": ("runtime older than the model (opset/IR)", lambda: session(file(helper.make_node("Relu", ["x"], ["y"]), ir=99))),
    "opset": ("runtime older than the model (opset/IR)", lambda: session(file(helper.make_node("Relu", ["x"], ["y"]), opset=99))),
    "operator": ("custom operator unknown to the runtime", lambda: session(file(helper.make_node("MyOwn", ["x"], ["y"])))),
    "old opset": ("opset too low for the operator", lambda: session(file(helper.make_node("Gelu", ["x"], ["y"]), opset=13))),
    "types": (
        "type mismatch inside the graph",
        lambda: session(file(helper.make_node("Add", ["x", "c"], ["y"]), c=np.ones(4, np.int64))),
    ),
    "a baked size": ("shape baked at trace", reshaped),
    "a table": ("index beyond a table", looked_up),
    "a branch": ("data-dependent value or control flow", lambda: exported(Branch(), torch.ones(2))),
    "a fixed size": (
        "dynamic dimension specialised to a constant",
        lambda: exported(Fixed(), torch.ones(3, 4), dynamic_shapes={"v": {0: torch.export.Dim("rows", min=2)}}),
    ),
    "a container": ("unsupported input/output container", lambda: exported(Takes(), torch.ones(2), Opaque())),
    "a trace": ("data-dependent value or control flow", traced),
}


@pytest.mark.parametrize("name", PROVOKED)
def test_what_the_tools_really_say_is_explained(name: str) -> None:
    cause, provoke = PROVOKED[name]
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the tool raises
        provoke()
    found = explained(f"{type(raised.value).__module__}.{type(raised.value).__name__}: {raised.value}")
    assert found.cause == cause, str(raised.value)
    assert "{" not in found.command


TOLD = [
    ("AssertionError: Mutating module attribute last_mask during export.", "module mutated in forward", "last_mask"),
    (
        "Exporting the operator 'aten::histc' to ONNX opset version 17 is not supported.",
        "operator has no converter",
        "aten::histc",
    ),
    (
        "ONNX export failed on an operator with unrecognized namespace mylib::roll3d.",
        "custom operator without a converter",
        "mylib",
    ),
    (
        "No ONNX function found for <OpOverload(op='quantized.linear', overload='default')>.",
        "quantised model not exportable",
        "linear",
    ),
    ("Unsupported: ONNX export of Pad in opset 9. Please try opset version 11.", "opset too low for the operator", "11"),
    ("Failed to export an ONNX attribute 'onnx::Sub', since it's not constant", "attribute is not constant", "onnx::Sub"),
    (
        "TracerWarning: Converting a tensor to a Python integer might cause the trace to be incorrect.",
        "shape baked at trace",
        "integer",
    ),
    ("Unsupported model IR version: 11, max supported IR version: 10", "runtime older than the model (opset/IR)", "max"),
    ("libcudnn.so.9: cannot open shared object file: No such file", "GPU libraries missing or mismatched", "libcudnn.so.9"),
    ("ImportError: cannot import name 'mapping' from 'onnx' (unknown location)", "package versions clash", "mapping"),
    ("OpenVINO does not support the following ONNX operations: NonZero", "target runtime lacks the operator", "NonZero"),
    ("values not close enough, max diff: 0.3 (atol: 1e-05) onnx", "exported graph computes something else", ""),
    (
        "DispatchError: No ONNX function found for <OpOverload(op='aten.searchsorted', overload='Tensor')>.",
        "operator has no converter",
        "aten.searchsorted",
    ),
    (
        "TracerWarning: Converting a tensor to a Python integer might cause the trace to be incorrect.\n  n = int(lengths.max())",
        "data-dependent value or control flow",
        "Python integer",
    ),
    ("AssertionError: Guard failed: x.size()[0] // 5 != 1", "dynamic dimension specialised to a constant", "x.size()[0]"),
    (
        "[libprotobuf ERROR] Error parsing text-format onnx2trt_onnx.ModelProto: 1:1\n[TRT] Failed to parse",
        "file is damaged, or no ONNX file",
        "",
    ),
    (
        'Deserialize tensor a failed.Failed to load external data file "model.onnx_data", error: Module.MountedFiles',
        "external data missing or misplaced",
        "model.onnx_data",
    ),
    (
        "Error: no available backend found. ERR: [wasm] RuntimeError: Aborted(WebAssembly.instantiate()",
        "environment of the process",
        "WebAssembly",
    ),
    (
        "[TRT] In node 12 (parseGraph): UNSUPPORTED_NODE: No importer registered for op: NonZero",
        "target runtime lacks the operator",
        "",
    ),
    ("UserWarning: the float32 number 1e-12 will be truncated to 1e-07", "fp16 overflow", ""),
    (
        "[onnxruntime:, inference_session.cc] Exception: CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED",
        "GPU libraries missing or mismatched",
        "CUBLAS failure 1",
    ),
    (
        "RuntimeError: number of output names provided (2) exceeded number of outputs (1)",
        "names given do not fit the model",
        "(2)",
    ),
    ("ValueError: Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 3000000000", "model larger than 2 GB", ""),
    ("RuntimeError: The serialized model is larger than the 2GiB limit imposed by the protobuf", "model larger than 2 GB", ""),
    ("batch_norm.h:52 BatchNorm !is_train_ was false. Training mode is not supported", "model in training mode, or random", ""),
    ("UserWarning: ... when exporting the model in training-amenable mode", "model in training mode, or random", ""),
    (
        "Converter is not implemented (OperationDescription(domain='', operation_type='Col2Im')) onnx2torch",
        "target runtime lacks the operator",
        "Col2Im",
    ),
    (
        "UNSUPPORTED_NODE: No importer registered for op: Unique. Attempting to import as plugin.",
        "target runtime lacks the operator",
        "Unique",
    ),
    (
        "ERROR: builtin_op_importers.cpp:99 In function importTile: [8] Assertion failed: inputs.at(0)",
        "target runtime lacks the operator",
        "Tile",
    ),
    (
        "[TRT] [W] Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support "
        "INT64. Attempting to cast down to INT32.",
        "integers are narrowed",
        "",
    ),
    (
        "[E] Error Code 4: Network has dynamic or shape inputs, but no optimization profile has been defined.",
        "target builds for sizes that it has to be told",
        "",
    ),
    (
        "OnnxRuntimeException: [ErrorCode:Fail] TensorRT execution provider is not enabled in this build.",
        "GPU libraries missing or mismatched",
        "TensorRT",
    ),
    (
        "TypeError: quantize_static() got an unexpected keyword argument 'quant_pre_process'",
        "package versions clash",
        "quant_pre_process",
    ),
    ("onnx_cpp2py_export.cpython-39-x86_64-linux-gnu.so: undefined symbol: _ZN6google8protobuf", "package versions clash", ""),
    ("ValueError: Expected /conv/Cast_output_0 to be an initializer", "quantiser stopped", "/conv/Cast_output_0"),
    (
        "  File \".../onnxruntime/quantization/quantize.py\", line 9, in quantize\n    q()\nKeyError: 'x'",
        "quantiser stopped",
        "KeyError",
    ),
    (
        "KeyError: \"llama is not supported yet. Only ['bert'] are supported.\" transformers.onnx",
        "architecture or task unknown to the exporter",
        "llama",
    ),
    ("ValueError: torch.nn.DataParallel is not supported by ONNX exporter", "wrapped model", "model.module"),
    (
        "RuntimeError: Expected input at *args[0].shape[0] to be equal to 4, but got 5. please re-export",
        "shape baked at trace",
        "equal to 4",
    ),
    ("ValueError: Type <class 'my.Cache'> is not registered as a pytree node", "unsupported input/output container", "my.Cache"),
    (
        "Load model from trt.onnx failed:Fatal error: trt.plugins:Nms_TRT(-1) is not a registered function/op",
        "custom operator unknown to the runtime",
        "Nms_TRT",
    ),
    (
        "Deserialize tensor w failed.GetFileLength for ./weights.pb failed:Invalid fd was supplied",
        "external data missing or misplaced",
        "weights.pb",
    ),
    (
        "torch.onnx: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "example on another device",
        "",
    ),
    ("torch.onnx: Input type (double) and bias type (float) should be the same", "example does not fit the model", "double"),
    ("RuntimeError: Found following user inputs located at [0] are mutated.", "in-place change of an input", ""),
    (
        "TracerWarning: There are 2 live references to the data region being modified when tracing in-place operator add_.",
        "in-place change of an input",
        "add_",
    ),
    ("ValueError: Unsupported ONNX opset version: 30", "opset unknown to the exporter", "30"),
    (
        "Failed to export a node '%9 : Long = onnx::Gather' (in list node %2) because it is not constant.",
        "attribute is not constant",
        "onnx::Gather",
    ),
    (
        "UserWarning: ONNX export failed on ATen operator renorm because torch.onnx.symbolic_opset9.renorm does not exist",
        "operator has no converter",
        "renorm",
    ),
    (
        "running Attention node. Name:'a' Status Message: hidden size should be divisible by value of num_heads",
        "attention fused with wrong numbers",
        "",
    ),
    (
        "optimum: `use_cache` was set to `True` but the loaded model only supports `use_cache=False`",
        "cache asked for that was not exported",
        "use_cache=False",
    ),
    ("/onnx-optimizer/onnxoptimizer/passes/fuse_pad.h:48: Assertion `x` failed", "simplifier stopped", "fuse_pad"),
    ("torch.onnx.export(model, x, f)\nSegmentation fault (core dumped)", "native code crashed", "Segmentation fault"),
    ("onnxruntime: CUDNN failure 3: CUDNN_STATUS_BAD_PARAM", "GPU libraries missing or mismatched", "CUDNN failure 3"),
    (
        "Type (tensor(float16)) of output arg (y) of node (n) does not match expected type (tensor(float)). onnx",
        "type mismatch inside the graph",
        "",
    ),
    ("torch.onnx TypeError: object of type 'torch._C.Value' has no len()", "attribute is not constant", ""),
    (
        "TypeError: 'NoneType' object is not subscriptable\n  File torch/onnx/symbolic_opset11.py in pad",
        "unknown shape or rank in a symbolic",
        "",
    ),
    ("torch.onnx RuntimeError: ISTFT does not currently support complex types", "complex numbers", ""),
    (
        "Tensor element data type discovered: Float metadata expected: Int64",
        "input dtype differs from the model's",
        "Int64",
    ),
    ("TypeError: A int64 tensor's data must be type of function BigInt64Array", "input dtype differs from the model's", "int64"),
    ("Input name 'x' Got: 3 Expected: 4 Invalid rank for input: x", "input shape differs from the model's", "4"),
    ('Failed to load external data file ""w.onnx_data"", error', "external data missing or misplaced", "w.onnx_data"),
    ("caffe2 onnx: Don't know how to translate op Loop", "target runtime lacks the operator", "Loop"),
    (
        "TypeError: Failed to execute 'compile' on 'WebAssembly': HTTP status code is not ok; ort-wasm.wasm",
        "environment of the process",
        "WebAssembly",
    ),
    ("the result of the onnx model is different from the PyTorch model", "exported graph computes something else", ""),
    ("torch output: [1.0, 2.0]\nonnx output: [1.5, 2.5]", "exported graph computes something else", ""),
]


@pytest.mark.parametrize(("text", "cause", "fact"), TOLD, ids=[cause for _, cause, _ in TOLD])
def test_facts_are_read_out_of_the_message(text: str, cause: str, fact: str) -> None:
    found = explained(text)
    assert found.cause == cause
    if fact != "max":
        assert fact in f"{found.means} {found.do}"
    else:
        assert (found.facts["got"], found.facts["most"]) == ("11", "10")


FOREIGN = [
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)",
    "TypeError: forward() missing 1 required positional argument: 'x'",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "AttributeError: module 'numpy' has no attribute 'bool'.",
    "ImportError: cannot import name 'AdamW' from 'transformers'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "RuntimeError: Trying to backward through the graph a second time",
    "loss is nan, stopping training (fp16 amp)",
    "IndexError: list index out of range",
    "_pickle.UnpicklingError: Weights only load failed.",
    "ModuleNotFoundError: No module named 'cv2'",
    "requests.exceptions.SSLError: HTTPSConnectionPool(host='huggingface.co', port=443): CERTIFICATE_VERIFY_FAILED",
    "docker: Error response from daemon: pull access denied for foo",
    "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
    "ValueError: could not export data to Excel: openpyxl is not installed",
    "RuntimeError: expected scalar type Half but found Float",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised: RuntimeError: no working triton installation",
    "Segmentation fault (core dumped)",
    "RuntimeError: The size of tensor a (128) must match the size of tensor b (64) at non-singleton dimension 1",
    "TypeError: __init__() got an unexpected keyword argument 'n_jobs'",
    "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    "pip's dependency resolver: tensorboard 2.9 requires protobuf<3.20, but you have protobuf 4.21",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_what_has_nothing_to_do_with_export_is_unknown(text: str) -> None:
    assert not explained(text)


def test_every_mechanism_names_a_page_that_is_there_and_words_that_can_be_filled_in() -> None:
    for mechanism in MECHANISMS:
        assert mechanism.code in CODES | {""}
        assert mechanism.compiled
    assert explained("x" * 100 + " NO_SUCHFILE").command == "torchferry check model.onnx"


@pytest.mark.parametrize(
    "piece", ["Load model from ", "step 1/3 of exporting\n", "fp16 ", "Unsupported: ONNX export of ", "<class '", "a" * 50 + " "]
)
def test_a_long_text_is_read_in_seconds(piece: str) -> None:
    began = time.perf_counter()
    explained(piece * 100_000)
    assert time.perf_counter() - began < 60


def test_an_exception_is_explained_in_python() -> None:
    with pytest.raises(Exception, match="NO_SUCHFILE") as raised:
        onnxruntime.InferenceSession("not/there.onnx")
    assert "cause  file absent" in torchferry.explain(raised.value)


def command(*words: str, given: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    full = [sys.executable, "-m", "torchferry", *words]
    return subprocess.run(full, input=given, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def test_the_command_takes_an_error_or_a_traceback_and_says_when_it_does_not_know() -> None:
    assert "operator has no converter" in command("explain", "--error", TOLD[1][0]).stdout
    assert "file absent" in command("explain", given="Traceback ...\nNO_SUCHFILE : Load model from a.onnx failed").stdout
    unknown = command("explain", given="KeyError: 'labels'")
    assert (unknown.returncode, "unknown" in unknown.stdout) == (1, True)
    assert command("explain", given="").returncode == 2
    assert "\x1b" not in command("explain", "--error", "Invalid Feed Input Name:\x1b]0;owned\x07").stdout


def test_a_script_runs_as_it_is_and_what_it_raises_is_explained(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, onnxruntime\nprint(sys.argv[1:], __name__)\nonnxruntime.InferenceSession('no.onnx')\n", encoding="utf-8"
    )
    ended = command("mine.py", "--own", cwd=tmp_path)
    assert ended.stdout == "['--own'] __main__\n"
    assert ended.stderr.startswith('Traceback (most recent call last):\n  File "mine.py", line 3')
    assert "next   torchferry check no.onnx" in ended.stderr
    assert ended.returncode == 1
    script.write_text("import sys\nsys.exit(7)\n", encoding="utf-8")
    assert command("mine.py", cwd=tmp_path).returncode == 7
