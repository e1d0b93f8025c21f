"""What other runtimes and converters say of an ONNX file."""

from torchferry.messages.mechanism import CHECK, EXPORT, Mechanism

MECHANISMS = (
    Mechanism(
        "integers are narrowed",
        "It is a warning: ONNX counts in 64-bit integers, and TensorRT in 32. That is harmless where no index or size passes 2 thousand "
        "million.",
        "Nothing, where this is all that is said; an error is further down.",
        (r"generated with INT64 weights[^\0]{0,120}?does not natively support INT64(?![^\0]*(?:\[E\]|ERROR|Error))",),
    ),
    Mechanism(
        "target builds for sizes that it has to be told",
        "The file has sizes that move, and TensorRT builds an engine for a range of each that nobody gave it.",
        "Name the ranges: `trtexec --minShapes=x:1x3x224x224 --optShapes=... --maxShapes=...`, or a profile of the builder; or export "
        "with those sizes fixed.",
        (
            r"no optimization profile has been defined",
            r"[Nn]etwork has dynamic (?:or shape )?inputs[^\n]{0,80}profile",
            r"(?:Dynamic|dynamic) dimensions? (?:are )?(?:required|specified)[^\n]{0,40}(?:profile|explicit)",
            r"(?:input|tensor) (?P<name>\S+)[^\n]{0,40}(?:is missing|has no) (?:dynamic dimensions|shape)[^\n]{0,40}(?:in profile|profile)",
            r"Profile \d+ (?:has|is)[^\n]{0,80}(?:incomplete|invalid|missing)",
        ),
        "",
        CHECK,
    ),
    Mechanism(
        "target runtime lacks the operator",
        "The file is ONNX, and {runtime} does not take `{op}` in it, or not in this form.",
        "A newer release of it may; otherwise write that part of the model in other operators (lists and sequences as `torch.cat` and "
        "`stack`, `index_put` as `where` or `scatter`), or export at another opset.",
        (
            r"(?P<runtime>OpenVINO) does not support the following ONNX operations: (?P<op>[^\n]+)",
            r"In node \d+ (?:with name: \S+ and operator: (?P<op>\w+))?[^\n]*(?:UNSUPPORTED_NODE|INVALID_NODE|INVALID_GRAPH|INTERNAL_ERROR|UNSUPPORTED_GRAPH)",
            r"No importer registered for op: ?(?P<op>\w*)",
            r"UNSUPPORTED_NODE\w*: ?(?P<op>\w*)",
            r"(?P<runtime>(?<![\w./\\])(?:TensorRT|\[TRT\]|TRT|trtexec))(?![\w./\\])[^\n]{0,160}(?:not support\w*|unsupported|failed|could not|no implementation)[^\n]{0,60}",
            r"getPluginCreator could not find plugin:? ?(?P<op>\w*)",
            r"(?:Plugin|plugin) not found[^\n]{0,60}",
            r"(?P<op>\w+) is not (?:implemented|supported)\.?[^\n]{0,40}(?P<runtime>onnx[-_2]?tf|onnx2tf|TensorFlow|tflite)",
            r"Don't know how to translate op (?P<op>\w+)",
            r"BackendIsNotSupposedToImplementIt: (?P<op>\w+)",
            r"Converter is not implemented \(OperationDescription\([^)]*operation_type='(?P<op>\w+)'",
            r"(?P<runtime>onnx[-_]?tf|onnx2tf|onnx2torch|onnx2keras|onnx2pytorch)[/\\][^\0]*?(?:KeyError: '(?P<op>[\w.]+)'|NotImplementedError)",
            r"(?P<runtime>openvino|ovc|mo_onnx)\w*[/\\.][^\0]{0,2000}?Check '[^\n]*' failed",
            r"Check '[^\n]*' failed at [^\0]{0,400}?(?P<runtime>openvino)",
            r"Cannot infer shapes or values for node \"(?P<op>[^\"]+)\"",
            r"In function import(?P<op>[A-Z]\w+)[^\0]{0,80}?Assertion failed",
            r"(?:ModelImporter|onnx2trt_utils|builtin_op_importers|onnxOpImporters)\.cpp:\d+[^\0]{0,160}?Assertion failed",
            r"(?P<runtime>RKNN|rknn)[^\n]*unsupport\w* onnx opset (?P<op>\d+)",
            r"The following operators are not supported for frontend (?P<runtime>ONNX): (?P<op>[^\n]+)",
            r"(?P<runtime>cv::dnn|OpenCV\([^)]*\))[^\0]{0,400}?(?:onnx_importer|ONNXImporter|Can't create layer)",
            r"onnx_importer\.cpp[^\n]{0,200}",
            r"(?P<runtime>coremltools|Core ?ML|RKNN|rknn|SNPE|QNN|ncnn|MNN|TVM|DirectML|Barracuda|Sentis|Hailo|tract|OpenVINO|nGraph|ngraph)\b[^\n]{0,160}(?:not support\w*|unsupported|unknown op\w*|not implemented|missing)[^\n]{0,10}(?P<op>\w*)",
            r"(?P<op>\w+) not supported yet!?[^\n]{0,20}(?P<runtime>ncnn)?$",
            r"unsupported (?:onnx )?(?:operator|op|layer)s?:? '?(?P<op>\w+)'?[^\n]{0,60}(?P<runtime>TensorRT|OpenVINO|TFLite|CoreML|ncnn|RKNN)",
        ),
        "",
        EXPORT,
        about_export=True,
    ),
    Mechanism(
        "simplifier stopped",
        "It is the simplifier that failed ({part}), and not the file: one of its rewrites does not expect what it meets.",
        "Go on without it (`onnxsim --skip-optimization`), or leave out the pass that is named: the file is as right before as after. "
        "torchferry folds constants itself, and compares.",
        (
            r"onnx-?optimizer[/\\]passes[/\\](?P<part>\w+)",
            r"onnxsim[/\\][^\0]{0,2000}?(?P<part>Assertion[^\n]{0,80} failed)",
            r"(?P<part>Simplified model[^\n]{0,40}(?:is (?:wrong|invalid)|check failed))",
        ),
        "",
        CHECK,
    ),
    Mechanism(
        "quantiser stopped",
        "onnxruntime's quantiser does not find in the file what it needs ({part}): shapes and types that were not inferred, a constant that "
        "is not stored as one, or an operator that it has no form for.",
        "Prepare the file first (`python -m onnxruntime.quantization.preprocess --input model.onnx --output ready.onnx`), quantise only the "
        'operators that carry weights (`op_types_to_quantize=["MatMul", "Conv"]`), or leave out the one that is named (`nodes_to_exclude`).',
        (
            r"(?P<part>Expected \S+ to be an initializer)",
            r"onnxruntime[/\\.]quantization[/\\.][^\0]{0,2000}?\n(?P<part>(?:\w+Error|Exception|AssertionError)[^\n]{0,120})",
            r"(?P<part>Inference failed or unsupported type to quantize for tensor '[^']+')",
            r"(?P<part>(?:Unable to find data type for weight_name|Failed to find proper ai\.onnx domain|Quantization parameters are not specified)[^\n]{0,80})",
        ),
        "",
        CHECK,
    ),
)
