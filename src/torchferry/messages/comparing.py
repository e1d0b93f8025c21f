"""What is said where a file opens and runs, and its numbers are not the model's."""

from torchferry.messages.mechanism import VERIFY, Mechanism

MECHANISMS = (
    Mechanism(
        "graph optimisation changed the result",
        "The file is right before an optimisation, and differs after it: a fusion of the optimiser computes something else.",
        "Leave out that level (`O1`, or `SessionOptions.graph_optimization_level`) or that fusion; `torchferry verify` compares the file "
        "with and without onnxruntime's optimiser, and says which is wrong.",
        (
            r"(?:optimi[sz]e\w*[ _=-]*\W{0,3}|[_\W])O[2-4]\b[^\0]*?(?:values not close enough|doesn't match|does not match|max diff)",
            r"(?:values not close enough|max(?:imum)? (?:absolute )?diff\w*)[^\0]{0,600}?(?:--optimize|ORT_ENABLE_ALL|optimi[sz]ed model|after optimi[sz])",
            r"(?:ORT_ENABLE_ALL|ORT_ENABLE_EXTENDED|after optimi[sz]\w+|optimi[sz]ed model|optimi[sz]er\.optimize_model)[^\0]{0,600}?(?:values not close|mismatch|differ|wrong|Not equal to tolerance)",
            r"_o[2-4]/model\.onnx[^\0]*?(?:values not close enough|max diff)",
        ),
        "NUM007",
        VERIFY,
    ),
    Mechanism(
        "fp16 overflow",
        "In float16 a number of the graph is beyond 65504 and becomes infinite, then NaN: a sum, a mean, a norm or a mask's large negative.",
        "Keep those operators in float32 (`op_block_list` of the converter: ReduceMean, Softmax, LayerNormalization, Pow), or use "
        "bfloat16 or float32.",
        (
            r"(?:fp16|float16|half)\b[^\0]{0,400}?(?:\bnan\b|#NAN=[1-9]|\binf\b|overflow)",
            r"(?:\bnan\b|#NAN=[1-9]|\binf\b|overflow)[^\0]{0,400}?(?:fp16|float16|half precision)",
            r"(?:will be truncated|truncat\w+) to (?:-)?(?:65504|10000|1e-07|1e4)",
        ),
        "RUN021",
        VERIFY,
        about_export=True,
    ),
    Mechanism(
        "exported graph computes something else",
        "The file opens and runs, and gives other numbers than the model: a branch, a size or a constant was frozen at the example, or an "
        "operator was translated wrongly.",
        "`torchferry verify` says at which sizes and values, and at which line of the model, they part; `torchferry export` makes a file "
        "that was compared.",
        (
            r"values not close enough",
            r"Outputs? values? (?:doesn't|does not|do not|don't) match between (?:the )?reference",
            r"max\w* absolute difference between the (?:output of the )?reference model and the ONNX",
            r"output (?:names|shape) (?:doesn't|does not|don't) match (?:the )?reference",
        ),
        "NUM001",
        VERIFY,
    ),
    Mechanism(
        "exported graph computes something else",
        "Two sets of outputs were compared and differ by more than rounding.",
        "`torchferry verify` says at which sizes and values, and at which line of the model, they part.",
        (r"Not equal to tolerance rtol=[^\0]{0,400}?Mismatch", r"Tensor-likes are not close", r"Mismatched elements: \d+ / \d+"),
        "NUM001",
        VERIFY,
        about_export=True,
    ),
)
# what people say in their own words, where nothing in the text is a tool's
PROSE = (
    Mechanism(
        "exported graph computes something else",
        "The file gives other numbers than the model: a branch, a size or a constant was frozen at the example, an operator was "
        "translated wrongly, the model was exported in training mode, or the two are not fed the same.",
        "`torchferry verify` says at which sizes and values, and at which line of the model, they part; `torchferry export` makes a file "
        "that was compared.",
        (
            r"(?:output|result|prediction|logit|value)s?[^\n]{0,60}(?:onnx|ort\b|onnxruntime)[^\n]{0,60}(?:differ|mismatch|not (?:the same|equal|match|close)|wrong)",
            r"(?:onnx|ort\b|onnxruntime)[^\n]{0,80}(?:output|result|prediction|logit|value)s?[^\n]{0,60}(?:differ|mismatch|not (?:the same|equal|match|close)|wrong)",
            r"(?:torch|pt)\w* ?(?:output|result)s?:?[^\n]*\n\s*(?:onnx|ort)\w* ?(?:output|result)s?:?",
            r"Max absolute difference[^\0]{0,400}?(?:ort_?|onnx)",
        ),
        "NUM001",
        VERIFY,
    ),
)
