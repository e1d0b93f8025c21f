"""What torch.onnx says of operators, their attributes and their arguments."""

from collections.abc import Mapping

from torchferry.messages.mechanism import CHECK, EXPORT, Mechanism

_OWN = (
    "aten", "torch", "prim", "onnx", "prims", "quantized", "quantized_decomposed", "higher_order", "_operator", "operator",
    "builtins", "math",
)  # fmt: skip


def _quantised(facts: Mapping[str, str]) -> bool:
    return "quant" in facts.get("op", "").lower()


def _is_custom(facts: Mapping[str, str]) -> bool:
    namespace, dot, _ = facts.get("op", "").replace("::", ".").partition(".")
    return bool(dot) and namespace.isidentifier() and namespace not in _OWN


_UNCONVERTED = (
    r"Exporting the operator '?(?P<op>[\w:.]+?)'? to ONNX opset version (?P<opset>\d+) is not supported",
    r"ONNX export failed on an operator with unrecognized namespace '?(?P<op>\w+::\w+)",
    r"No ONNX function found for <OpOverload\(op='(?P<op>[^']+)'",
    r"No ONNX function found for <?(?P<op>[\w.:]*[^\s>]*)",
    r"Unsupported FX nodes: \{'call_function': \['(?P<op>[^']+)'",
    r"Couldn't export operator (?P<op>[\w:]+)",
    r"ONNX export failed: Couldn't export (?P<op>aten::\w+)",
    r"(?:Cannot find|No) symbolic (?:function )?for (?P<op>(?:aten|prim|quantized)::\w+)",
    r"No symbolic function (?:to convert|for) (?:the )?'?(?P<op>[\w:.]+)",
    r"Unsupported (?:operator|ONNX op)s?:? '?\[?'?(?P<op>(?:aten|prims?|quantized)(?:::|\.)\w+)",
    r"KeyError: '(?P<op>aten::\w+)'",
    r"Tensorflow op \[[^\]\n]*?: ?(?P<op>\w+)\] is not supported",
    r"ONNX export failed on (?:ATen )?operator (?P<op>[\w:]+) because",
    r"Unknown call_function target: (?:<function )?(?P<op>[\w.]+)",
    r"(?P<op>aten::\w+) (?:is|was) not (?:supported|implemented|converted)",
    r"(?:operator|op) '?(?P<op>aten[.:]+\w+)[^\n]{0,40}(?:not (?:supported|implemented)|no (?:decomposition|translation|lowering))",
    r"no (?:decomposition|conversion|translation)s? (?:was |were )?(?:found |registered )?for (?P<op>(?:aten|prims)[.:]+[\w.]+)",
)
MECHANISMS = (
    Mechanism(
        "quantised model not exportable",
        "`{op}` is an operator of torch's own quantised kernels, for which that exporter has no ONNX.",
        "Export the float model and quantise the file with onnxruntime; or give torchferry the quantised one, which writes it out "
        "in ONNX's quantise and dequantise nodes and compares.",
        (
            *_UNCONVERTED,
            r"Could not run '(?P<op>quantized::[\w.]+)'",
            r"(?P<op>quantized(?:_decomposed)?(?:::|\.)\w+)[^\n]{0,80}(?:not supported|unsupported|unrecognized|no ONNX)",
            r"(?:export|ONNX)[^\n]{0,80}(?P<op>quantized::\w+)",
            r"(?P<op>(?:aten::)?(?:fake_)?quantize_per_\w+)[^\n]{0,80}(?:not supported|only|must)",
        ),
        "CAP050",
        EXPORT,
        holds=_quantised,
    ),
    Mechanism(
        "custom operator without a converter",
        "`{op}` is no operator of torch's own, and nobody has told the exporter what it is in ONNX.",
        "`torchferry.register_op` takes a translation of it; or replace it by what it is made of. A `symbolic` of an autograd "
        "Function has to give as many values as its forward.",
        _UNCONVERTED,
        "TRN002",
        EXPORT,
        holds=_is_custom,
    ),
    Mechanism(
        "custom operator without a converter",
        "`{op}` is an autograd Function or an extension, and what its `symbolic` gives is not what the exporter needs.",
        "`torchferry.register_op` takes a translation of it; a `symbolic` has to give as many values as forward, by nodes of a domain "
        "that is registered.",
        (
            r"symbolic for (?P<op>\w+) produced an incorrect number of outputs",
            r"Couldn't export Python operator (?P<op>\w+)",
            r"(?:onnx|prim)::PythonOp",
            r"(?P<op>\w+)(?:Backward)? (?:has no attribute|object has no attribute) 'symbolic'",
            r"(?:Failed|Unable) to (?:export|convert) (?:custom|autograd) (?:op\w*|function)[^\n]{0,10}(?P<op>[\w:.]*)",
            r"(?P<op>\w+): (?:the )?symbolic (?:function|method)[^\n]{0,60}(?:not|missing)",
        ),
        "TRN002",
        EXPORT,
    ),
    Mechanism(
        "opset too low for the operator",
        "ONNX can say this from opset {opset} on, and a lower one was asked for.",
        "Export with `opset_version={opset}` or later; torchferry takes the lowest that the model needs, unless told one.",
        (
            r"(?:Please )?(?:try|use) (?:a )?(?:higher )?opset(?:[_ ]version)? (?:version )?(?P<opset>\d+)",
            r"(?:supported|available|introduced|added) (?:only )?(?:since|from|in|starting from) opset(?: version)? (?P<opset>\d+)",
            r"(?:requires?|needs?) (?:at least )?opset(?:[_ ]version)? ?(?:>=|version)? ?(?P<opset>\d+)",
            r"opset_?version (?:must|should) be (?:at least|>=|greater than(?: or equal to)?) ?(?P<opset>\d+)",
            r"opset (?P<opset>\d+) (?:or (?:higher|above|later|greater))",
        ),
        "TRN003",
        EXPORT,
        about_export=True,
    ),
    Mechanism(
        "opset unknown to the exporter",
        "The exporter of that torch knows no opset {opset}: it is newer than torch is.",
        "Ask for a lower `opset_version`, or take a newer torch. torchferry takes the lowest opset that the model needs, unless told one.",
        (
            r"Unsupported ONNX opset version:? ?(?P<opset>\d+)",
            r"unsupported (?:onnx )?opset[_ ]version:? ?(?P<opset>\d+)",
            r"opset_version \(?(?P<opset>\d+)\)? (?:is )?(?:not supported|out of range|must be between)",
        ),
        "TRN003",
        EXPORT,
    ),
    Mechanism(
        "unknown shape or rank in a symbolic",
        "The exporter needs a shape, rank or type at this operator that tracing lost on the way.",
        "The capture of torch.export keeps shapes: export through torchferry, or with `dynamo=True`. A weight that is computed in "
        "forward (modulated convolution) is best written as a matrix product, or given a fixed shape.",
        (
            r"of unknown (?:shape|rank|size|dimension|type)",
            r"unknown (?:shape|rank|channel size|input size|dtype|scalar type)",
            r"(?:input|output|kernel|tensor) (?:size|shape|rank|type)s? (?:is |are |was )?(?:not accessible|unknown|not known)",
            r"UNKNOWN_SCALAR",
            r"ONNX symbolic expected the output of [^\n]{0,60} to be a tensor of known (?:rank|shape|type)",
            r"(?:shape|rank|dtype|type) (?:inference|information)[^\n]{0,40}(?:is |are )?(?:missing|lost|not available|unavailable)[^\n]{0,40}symbolic",
            r"Unable to (?:infer|determine|get) (?:the )?(?:rank|shape|dtype|scalar type)",
            r"Expected [^\n]{0,60}(?:rank|shape|sizes?) to be (?:known|static)",
            r"'NoneType' object is not (?:subscriptable|iterable)[^\0]{0,400}?symbolic_(?:opset|helper)",
            r"symbolic_opset\d+\.py[^\0]{0,600}?(?:'NoneType' object is not (?:subscriptable|iterable)|unsupported operand type[^\n]*NoneType)",
        ),
        "TRN005",
        EXPORT,
    ),
    Mechanism(
        "attribute is not constant",
        "`{op}` takes an attribute (a kernel size, an axis, an output size) that ONNX wants as a constant, and the model computes it.",
        "Make it a plain number: `int(...)` of a size that does not move, or a form without it, such as `mean` in place of a "
        "pool over the whole map.",
        (
            r"Failed to export an ONNX attribute '(?P<op>[^']+)', since it's not constant",
            r"Failed to export (?:an )?ONNX attribute",
            r"Failed to export a node '[^']*?(?P<op>\w+::\w+)[^']*'[^\n]*because it is not constant",
            r"ONNX export of (?P<op>\w+) with dynamic inputs",
            r"(?:since|because) (?P<op>\w+) is not (?:a )?constant",
            r"(?:must|should|needs? to|has to) be (?:a )?constants?\b",
            r"(?:is|are) not constants?, please",
            r"(?:only|not) support\w*[^\n]{0,60}non-?constant",
            r"(?:int|float)\(\) argument must be [^\n]*torch\._C\.Value",
            r"'torch\._C\.Value' object (?:is not|has no|cannot)",
            r"object of type 'torch\._C\.Value' has no",
            r"Expected (?:node )?type 'onnx::Constant'",
        ),
        "TRN005",
        EXPORT,
    ),
    Mechanism(
        "complex numbers",
        "ONNX's operators take no complex numbers.",
        "Keep real and imaginary parts in a last axis of two (`torch.view_as_real`); torchferry does that itself and compares.",
        (
            r"(?:Complex(?:Float|Double|Half)?|complex(?:64|128))\b[^\n]{0,80}(?:not supported|unsupported|unexpected|cannot|no )",
            r"(?:not (?:currently )?support|unsupported)[^\n]{0,80}\bcomplex",
        ),
        "TRN004",
        EXPORT,
        about_export=True,
    ),
    Mechanism(
        "no ONNX form for these arguments",
        "`{op}` has a form in ONNX, but not with these arguments.",
        "Change the arguments as the message says, or the opset: newer ones know more. torchferry has forms of its own for many.",
        (
            r"Unsupported: ONNX export of (?:operator )?(?P<op>[\w:]+)",
            r"ONNX export (?:of|for) (?:operator )?'?(?P<op>[\w:]+)'? (?:is )?(?:not supported|only supports?|does(?:n't| not) support)",
            r"(?P<op>[\w:]+) (?:is )?not supported (?:for|with|when)[^\n]{0,80}ONNX",
            r"SymbolicValueError: (?P<op>[^\n]{1,80})",
            r"(?P<op>\w+)[^\n]{0,20}: (?:only|currently)[^\n]{0,60} (?:is|are) supported[^\n]{0,40}(?:ONNX|opset|export)",
        ),
        "TRN005",
        EXPORT,
    ),
    Mechanism(
        "operator has no converter",
        "`{op}` has no ONNX in that exporter and that release.",
        "A newer torch has more of them, `dynamo=True` others; torchferry decomposes it or has a form of its own, and compares.",
        (
            *_UNCONVERTED,
            r"No decompositions registered for the (?:real|complex)-valued input",
            r"<?torch\._ops\.(?P<op>HigherOrderOperator)",
        ),
        "TRN001",
        EXPORT,
    ),
    Mechanism(
        "old exporter API",
        "`{part}` is an argument or a function of another release's exporter.",
        "Use today's form: `dynamo=True`, with what is left of its arguments; `torchferry.export` takes its arguments.",
        (
            r"(?P<part>example_outputs) must be provided",
            r"_?export\w*\(\) (?:got an unexpected keyword argument|missing \d+ required [^\n]*:) '(?P<part>\w+)'",
            r"(?P<part>operator_export_type|use_external_data_format|enable_onnx_checker|strip_doc_string|_retain_param_name)\b",
            r"torch\.onnx\.(?P<part>\w+) (?:is|was|has been) (?:deprecated|removed)",
            r"(?P<part>ScriptModule)[^\n]{0,60}(?:not supported|dynamo)",
        ),
        "",
        EXPORT,
        about_export=True,
    ),
    Mechanism(
        "names given do not fit the model",
        "There are more names for inputs or outputs than the model has: {part}.",
        "Count what forward takes and returns; a result that is no tensor (a class, a dict of None) gives no output.",
        (
            r"(?P<part>number of (?:in|out)put names provided \(\d+\) exceeded number of (?:in|out)puts \(\d+\))",
            r"onnx[^\0]{0,600}?(?P<part>(?:in|out)put_names[^\n]{0,60}(?:does not match|mismatch|expected)[^\n]{0,60})",
        ),
        "NUM020",
        EXPORT,
    ),
    Mechanism(
        "wrapped model",
        "The model is wrapped for training on several devices, and the exporter takes no such wrapper.",
        "Export `model.module`.",
        (r"torch\.nn\.DataParallel is not supported", r"DistributedDataParallel[^\n]{0,60}not supported"),
        "",
        EXPORT,
    ),
    Mechanism(
        "architecture or task unknown to the exporter",
        "That release of the exporter has no configuration for the {arch} architecture, or none for {task}.",
        "A newer optimum or transformers may; torchferry takes any transformers model from its directory: "
        "`torchferry export hf:DIRECTORY`.",
        (
            r"Trying to export an? (?P<arch>[\w-]+) model, that is a custom or unsupported architecture(?: for the task (?P<task>[\w-]+))?",
            r"Asked to export an? (?P<arch>[\w-]+) model (?:for the task|with) (?P<task>[\w-]+)",
            r"(?P<arch>[\w-]+) (?:doesn't|does not) support (?:the )?task (?P<task>[\w-]+)",
            r"(?:task|feature) (?P<task>[\w-]+)[^\n]{0,40}(?:is )?not supported[^\n]{0,30}(?:for|by)[^\n]{0,10} (?P<arch>[\w-]+)",
            r"(?P<arch>[\w-]+) is not supported yet(?: with the task| for|\. Only)[^\n]{0,20}?(?P<task>[\w-]*)",
            r"(?P<arch>[\w-]+) (?:model type|architecture|models?) (?:is |are )?not supported[^\n]{0,30}(?:onnx|optimum|export)",
            r"(?P<arch>[\w-]+) (?:is )?not supported[^\n]{0,30}(?:transformers\.onnx|optimum)",
            r"The (?:model )?(?:type|architecture) '?(?P<arch>[\w-]+)'? [^\n]{0,60}not (?:supported|recognized|registered)",
            r"Unrecognized configuration class[^\n]*?(?P<arch>\w+Config)",
            r"(?P<task>[\w-]+) is not a (?:supported|valid) task",
            r"Unknown task:? '?(?P<task>[\w-]+)",
            r"optimum[/\\]onnxruntime[/\\][^\0]{0,2000}?KeyError: '(?P<task>\w*(?:logits|hidden_state|embeddings?|pooler_output))'",
        ),
        "",
        "torchferry export hf:DIRECTORY -o onnx/",
        about_export=True,
    ),
)
# what says no more than that a stage of the exporter failed
LAST = (
    Mechanism(
        "exporter bug in that version",
        "The exporter itself failed, with an error of its own ({part}) and not of the model's.",
        "Try another release of torch and onnxscript, or export through torchferry, which goes another way and says where it stops.",
        (
            r"Failed to decompose the FX graph[^\0]*?<class '(?P<part>\w+)'>",
            r"Failed to (?:decompose|convert|translate|optimi[sz]e|serialize)[^\n]{0,60}(?:FX graph|exported program|ONNX)[^\n]*",
            r"step [123]/3 of exporting[^\0]*?<class '(?P<part>\w+)'>",
            r"(?P<part>INTERNAL ASSERT FAILED)[^\0]*?(?:onnx|jit)",
            r"(?P<part>getTracingState: Assertion)",
            r"(?P<part>vector::_M_range_check)[^\0]*?(?:onnx|jit)",
            r"onnx[^\0]{0,400}?(?P<part>vector::_M_range_check)",
            r"(?P<part>Argument passed to at\(\) was not in the map)",
            r"(?P<part>(?:invalid )?unordered_map(?:::at|<K, T> key))",
            r"(?P<part>SpecViolationError)",
            r"(?P<part>PassError|Error during constant folding)[^\n]{0,100}",
            r'File "[^"\n]*torch[/\\]_?export[/\\][^"\n]*", line \d+, in \w+\n[^\n]*\n(?P<part>\w+(?:Error|Exception))\b',
            r"torch[/\\]onnx[/\\][^\n]+\n[^\0]*?\n(?P<part>\w+(?:Error|Exception))\b",
            r"onnxscript[/\\][^\n]+\n[^\0]*?\n(?P<part>\w+(?:Error|Exception))\b",
        ),
        "",
        EXPORT,
    ),
    Mechanism(
        "native code crashed",
        "The process died inside compiled code ({part}), so there is no message: an exporter, a runtime or a driver fell over.",
        "`torchferry` converts and runs files in a process of its own, and says at which step it dies; a newer release often does not.",
        (
            r"(?P<part>Segmentation fault|SIGSEGV|signal 11\b|exit code 139|SIGABRT|Illegal instruction|0xC0000005|access violation)",
        ),
        "",
        CHECK,
        about_export=True,
    ),
    Mechanism(
        "the capture failed",
        "torch.export did not get through the model, which is the first of three steps; why is said further down in the message.",
        'Give the whole text, with what stands under "Exception summary"; or the model: torchferry says where it stops, and why.',
        (r"Failed to export the model with torch\.export", r"step 1/3 of exporting"),
        "",
        EXPORT,
    ),
)
