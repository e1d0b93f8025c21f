"""What other runtimes and converters say of an ONNX file."""

from torchferry.messages.mechanism import EXPORT, Mechanism

MECHANISMS = (
    Mechanism(
        "target runtime lacks the operator",
        "The file is ONNX, and {runtime} does not take `{op}` in it, or not in this form.",
        "A newer release of it may; otherwise write that part of the model in other operators (lists and sequences as `torch.cat` and "
        "`stack`, `index_put` as `where` or `scatter`), or export at another opset.",
        (
            r"(?P<runtime>OpenVINO) does not support the following ONNX operations: (?P<op>[^\n]+)",
            r"In node \d+ (?:with name: \S+ and operator: (?P<op>\w+))?[^\n]*(?:UNSUPPORTED_NODE|INVALID_NODE|INVALID_GRAPH|INTERNAL_ERROR|UNSUPPORTED_GRAPH)",
            r"(?:UNSUPPORTED_NODE\w*|No importer registered for op): ?(?P<op>\w*)",
            r"(?P<runtime>TensorRT|\[TRT\]|TRT|trtexec)[^\n]{0,160}(?:not support\w*|unsupported|failed|could not|no implementation)[^\n]{0,60}",
            r"getPluginCreator could not find plugin:? ?(?P<op>\w*)",
            r"(?:Plugin|plugin) not found[^\n]{0,60}",
            r"(?P<op>\w+) is not (?:implemented|supported)\.?[^\n]{0,40}(?P<runtime>onnx[-_2]?tf|onnx2tf|TensorFlow|tflite)",
            r"BackendIsNotSupposedToImplementIt: (?P<op>\w+)",
            r"The following operators are not supported for frontend (?P<runtime>ONNX): (?P<op>[^\n]+)",
            r"(?P<runtime>cv::dnn|OpenCV\([^)]*\))[^\0]{0,400}?(?:onnx_importer|ONNXImporter|Can't create layer)",
            r"onnx_importer\.cpp[^\n]{0,200}",
            r"(?P<runtime>coremltools|Core ?ML|RKNN|rknn|SNPE|QNN|ncnn|MNN|TVM|DirectML|Barracuda|Sentis|Hailo|tract)\b[^\n]{0,160}(?:not support\w*|unsupported|unknown op\w*|not implemented|missing)[^\n]{0,10}(?P<op>\w*)",
            r"(?P<op>\w+) not supported yet!?[^\n]{0,20}(?P<runtime>ncnn)?$",
            r"unsupported (?:onnx )?(?:operator|op|layer)s?:? '?(?P<op>\w+)'?[^\n]{0,60}(?P<runtime>TensorRT|OpenVINO|TFLite|CoreML|ncnn|RKNN)",
        ),
        "",
        EXPORT,
        about_export=True,
    ),
)
