"""What is said where packages, builds and libraries do not fit each other."""

from torchferry.messages.mechanism import DOCTOR, Mechanism

# packages whose releases decide whether a model is exported and run
_FIELD = (
    r"(?:torch(?:\.onnx|\.export|\._export|\.utils\._pytree|\.fx|\.ao|\._C|\._dynamo)[\w.]*|onnx\w*(?:\.[\w.]+)?|optimum[\w.]*|transformers[\w.]*"
    r"|google\.protobuf[\w.]*|numpy(?:\.[\w.]+)?|tf2onnx[\w.]*|skl2onnx[\w.]*|winmltools[\w.]*|ml_dtypes[\w.]*|diffusers[\w.]*|olive[\w.]*|tensorrt[\w.]*)"
)
BROKEN = (
    Mechanism(
        "providers not given",
        "A build of onnxruntime for a GPU wants to be told which providers to use.",
        '`InferenceSession(path, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])`.',
        (r"required to explicitly set the providers parameter", r"explicitly set the providers"),
        "",
        DOCTOR,
    ),
    Mechanism(
        "GPU libraries missing or mismatched",
        "onnxruntime's GPU part does not find the CUDA, cuDNN or TensorRT that it was built for: {part}.",
        "Install the pair that its release names (its CUDA compatibility table), `onnxruntime-gpu` and not `onnxruntime`, and look at "
        "`get_available_providers()`; the CPU provider needs none of it.",
        (
            r"(?P<part>lib(?:cu\w+|nv\w+|onnxruntime_providers_\w+)\.so[\w.]*): cannot open shared object",
            r"(?P<part>CUDNN failure \d+)",
            r"(?:onnx|ExecutionProvider)[^\0]{0,400}?(?P<part>CUDNN_STATUS_\w+)",
            r"(?P<part>CUDNN_STATUS_\w+)[^\0]{0,400}?(?:onnx|ExecutionProvider)",
            r"(?P<part>CUDA failure \d+[^\n;]{0,60})",
            r"(?P<part>CUBLAS(?:_STATUS_\w+| failure \d+))[^\0]{0,400}?onnxruntime",
            r"onnxruntime[^\0]{0,400}?(?P<part>CUBLAS(?:_STATUS_\w+| failure \d+))",
            r"Failed to create (?P<part>(?:CUDA|Tensorrt|ROCM|DML|OpenVINO)ExecutionProvider)",
            r"(?:Specified|Unknown) provider '?(?P<part>\w+ExecutionProvider)'? (?:is|type)?[^\n]{0,20}(?:not in available|not available)",
            r"(?P<part>onnxruntime_providers_\w+(?:\.dll|\.so)?)[^\n]{0,80}(?:failed|error|not found|cannot)",
            r"(?P<part>EP Error)[^\0]{0,600}?Falling back",
            r"(?P<part>DmlExecutionProvider)[^\n]*(?:80004005|80070057|887A\w{4})",
            r"(?P<part>\w+) execution provider is not (?:enabled|supported|available) in this build",
            r"LoadLibrary failed with error \d+[^\n]{0,60}",
            r"(?P<part>\w+ExecutionProvider) (?:is )?(?:not (?:available|enabled|found)|unavailable)",
            r"(?P<part>no kernel image is available)[^\0]{0,400}?onnx",
        ),
        "",
        DOCTOR,
    ),
    Mechanism(
        "two builds installed over one another",
        "`import onnxruntime` finds a folder with no runtime in it: two flavours (onnxruntime, onnxruntime-gpu) overwrote each other, one "
        "was removed, or a file of yours has its name.",
        "`pip uninstall -y onnxruntime onnxruntime-gpu onnxruntime-directml`, then install one; rename a file `onnxruntime.py` of yours.",
        (
            r"module 'onnxruntime' has no attribute '(?P<part>\w+)'",
            r"partially initialized module 'onnxruntime'",
            r"cannot import name '\w+' from (?:partially initialized module )?'onnxruntime'",
            r"cannot import name '(?:InferenceSession|get_available_providers|SessionOptions)' from 'onnxruntime\b",
        ),
        "",
        DOCTOR,
    ),
    Mechanism(
        "package versions clash",
        "An extension was built for another release of the package that it extends (numpy, torch) than the one installed.",
        "Install the release of it for this one (onnxruntime 1.19 and later take numpy 2; torchvision has one for each torch), or go "
        "back: `pip install 'numpy<2'`.",
        (
            r"compiled using NumPy 1\.x cannot be run in",
            r"_ARRAY_API not found",
            r"numpy\.(?:core\.multiarray|dtype size changed)[^\n]{0,80}",
            r"module compiled against API version",
            r"operator torchvision::\w+ does not exist",
            r"[^\n]*onnx\w*[^\s]*\.(?:so|pyd)[^\n]{0,40}undefined symbol",
        ),
        "",
        DOCTOR,
    ),
    Mechanism(
        "package versions clash",
        "The code that protobuf generated for onnx is newer or older than the protobuf installed.",
        "`pip install -U onnx protobuf` together, or the pair that onnx's release names.",
        (
            r"Descriptors cannot (?:not )?be created directly",
            r"cannot import name '\w+' from 'google\.protobuf[\w.]*'",
            r"google[./]protobuf[^\n]{0,80}(?:has no attribute|VersionError|incompatible)",
            r"Detected incompatible Protobuf Gencode/Runtime versions",
        ),
        "",
        DOCTOR,
    ),
    Mechanism(
        "environment of the process",
        "It is the machine and not the model: {part}.",
        "In a container or on a shared machine set the number of threads (`intra_op_num_threads`); on Windows install the Visual C++ "
        "runtime; the rest of such lines is harmless.",
        (
            r"(?P<part>Attempt to use DefaultLogger but none has been registered)",
            r"(?P<part>pthread_setaffinity_np failed[^\n]{0,80})",
            r"(?P<part>DLL load failed while importing onnx\w*[^\n]{0,80})",
            r"(?P<part>(?:version `?GLIBC\w*[\d.]+'? not found|GLIBCXX_[\d.]+'? not found))[^\n]*onnx",
            r"(?P<part>cannot enable executable stack[^\n]{0,60})",
            r"(?P<part>cpuid_info warning: Unknown CPU vendor[^\n]{0,60})",
        ),
        "",
        DOCTOR,
    ),
)
MECHANISMS = (
    Mechanism(
        "environment of the process",
        "onnxruntime-web does not start in this browser: what it gets for its own .wasm file is not that file, or that of another "
        "release ({part}).",
        "Serve the .wasm and .mjs files of the same release beside the script, or name their folder in `ort.env.wasm.wasmPaths`; a page "
        "of HTML (`3c 21 44 4f`) is a path that the server does not have.",
        (
            r"no available backend found[^\n]*?\[\w+\] (?P<part>[^\n]{0,160}(?:wasm|WebAssembly|initWasm|is not a function)[^\n]{0,80})",
            r"(?P<part>WebAssembly\.instantiate\(\)[^\n]{0,80})[^\0]{0,400}?(?:ort|onnx)",
            r"(?P<part>Failed to execute '\w+' on 'WebAssembly'[^\n]{0,80})[^\0]{0,400}?ort-wasm",
            r"ort-wasm[^\0]{0,400}?(?P<part>Failed to execute '\w+' on 'WebAssembly'[^\n]{0,80})",
        ),
    ),
    Mechanism(
        "package versions clash",
        "`{part}` is not in the {package} that is installed: two packages are of releases that do not fit.",
        "Upgrade the one that asks (the last frame of yours in the traceback), or go back to the release of {package} that it was "
        "written for.",
        (
            rf"cannot import name '(?P<part>\w+)' from '(?P<package>{_FIELD})'",
            r"No module named '(?P<part>(?P<package>(?:onnx|optimum|transformers|torch|onnxscript|onnxruntime|numpy))\.[\w.]+)'",
            rf"module '(?P<package>{_FIELD})' has no attribute '(?P<part>\w+)'",
            r"(?P<package>(?:onnx|optimum|onnxscript|onnxruntime)\w*)[^\n]{0,40} requires? (?P<part>\w+ ?[<>=!~]+ ?[\d.]+)[^\n]*(?:but|have|found|incompatible)",
            r"(?P<part>torch\.onnx\.\w+) (?:only available|requires) (?:on|in|for)?[^\n]{0,20}torch",
            r"(?P<package>\w*(?:quanti[sz]|optimi[sz]|ORT|onnx)\w*)(?:\.__init__)?\(\) (?:got an unexpected keyword argument|missing \d+ required [^\n]*?:) '(?P<part>\w+)'",
        ),
        "",
        DOCTOR,
        about_export=True,
    ),
    Mechanism(
        "a package is missing",
        "`{package}` is not installed in the Python that runs.",
        "`pip install {package}`, with that same Python: `python -m pip install {package}`.",
        (
            r"No module named '?(?P<package>onnx|onnxruntime|onnxscript|optimum|onnxconverter_common|onnxsim|onnx_ir|onnxruntime_extensions)'?\s*(?:$|\n|;|,)",
            r"Module (?P<package>onnx\w*) is not installed",
            r"requires the (?P<package>onnx\w*) (?:package|library)",
            r"install (?P<package>onnx\w*) to (?:use|run|export|load)",
        ),
        "",
        DOCTOR,
    ),
)
