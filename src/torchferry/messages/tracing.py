"""What torch.jit.trace warns of and refuses: what it saw once is frozen."""

from torchferry.messages.mechanism import EXPORT, VERIFY, Mechanism

# the line below a warning, where it computes with a tensor's values and not with a size
_OF_VALUES = r"[^\n]*\n[^\n]*\.(?:max|min|sum|item|argmax|argmin|any|all|nonzero|count_nonzero)\("
MECHANISMS = (
    Mechanism(
        "in-place change of an input",
        "`{op}` writes into an argument. The exporter leaves the writing out, which changes what the graph computes.",
        "Use the form without the underscore and take its result; or clone the argument first.",
        (
            r"Removing mutation from node (?P<op>[\w:]+)",
            r"ONNX Preprocess - Removing mutation",
            r"(?P<op>aten::\w+_)\b[^\n]{0,80}(?:in-?place|mutation)",
            r"in-?place (?:op\w*|copy|mutation|modification)[^\n]{0,80}(?:export|trac|ONNX)",
        ),
        "NUM001",
        VERIFY,
    ),
    Mechanism(
        "shape baked at trace",
        "A size of the example is frozen in the graph ({part}): the file is right for that size, and wrong or refused at others.",
        "Take sizes from `x.shape` and compute with them as they are; for a recurrent layer, give the initial state as an input. "
        "torchferry exports with the sizes free and compares at other sizes; `verify` tells of a file whether it froze one.",
        (
            r"Exporting a model to ONNX with a batch_size other than 1, with a variable length with (?P<part>\w+)",
            r"Using (?P<part>len) to get tensor shape might cause the trace to be incorrect",
            r"(?P<part>Iterating over a tensor) might cause the trace to be incorrect",
            rf"Converting a tensor to a Python (?P<part>index|integer)[^\n]*might cause the trace to be incorrect(?!{_OF_VALUES})",
            r"TracerWarning[^\n]*\n[^\n]*(?P<part>(?:\.shape|\.size\(|len\()[^\n]*)",
            r"The shape of the (?P<part>[^\n]{1,40}) (?:is|was) (?:fixed|frozen|hard-?coded)",
        ),
        "NUM002",
        VERIFY,
    ),
    Mechanism(
        "data-dependent value or control flow",
        "A tensor was turned into a {kind} while tracing: the way that the example went is the only one in the graph.",
        "Write the choice as `torch.where` or `torch.cond`, or keep the number as a tensor; torchferry does so itself and compares.",
        (
            r"Converting a tensor to a (?P<kind>Python (?:boolean|float|number|list)|NumPy array)[^\n]*might cause the trace",
            rf"Converting a tensor to a (?P<kind>Python (?:index|integer))[^\n]*might cause the trace[^\n]*(?={_OF_VALUES})",
            r"TracerWarning: (?P<kind>torch\.\w+|[\w.]+) results are registered as constants in the trace",
            r"There is a (?P<kind>[\w ]+) that depends on (?:a )?tensor values?",
        ),
        "NUM010",
        VERIFY,
    ),
    Mechanism(
        "model in training mode, or random",
        "Two runs of the model on one example differ: dropout or batch norm in training mode, or random numbers.",
        "Call `model.eval()` before the export; make noise an input.",
        (
            r"exporting (?:the|a) model (?:to ONNX )?while in training mode",
            r"Tracing failed sanity checks",
            r"Graphs differed across invocations",
            r"Output nr \d+\. of the traced function does not match",
            r"Trace had nondeterministic nodes",
            r"ONNX export mode is set to (?:TrainingMode\.EVAL|inference mode)[^\n]*but[^\n]*train",
        ),
        "CAP015",
        EXPORT,
    ),
    Mechanism(
        "output does not hang on the inputs",
        "An output is a constant: nothing in it comes from an input of the trace.",
        "Return what is computed from the inputs; check that the example reaches it, and that nothing goes through numpy.",
        (r"did not have observable data dependence with trace inputs",),
        "NUM031",
        EXPORT,
    ),
    Mechanism(
        "tensor with gradients as a constant",
        "A tensor that wants gradients, and is neither a parameter of the module nor an input, is in the graph.",
        "Make it a parameter or a buffer of the module, `.detach()` it, or export under `torch.no_grad()`.",
        (r"Cannot insert a Tensor that requires grad as a constant",),
        "",
        EXPORT,
    ),
    Mechanism(
        "Python that TorchScript cannot compile",
        "TorchScript reads the source of forward, and does not know this construct: {part}.",
        "An export needs no scripting: give torchferry the plain module. Otherwise rewrite that line, or trace instead.",
        (
            r"torch\.jit\.frontend\.(?:NotSupportedError|UnsupportedNodeError):? ?(?P<part>[^\n]{0,120})",
            r"(?P<part>Compiled functions can't take variable number of arguments[^\n]{0,60})",
            r"Python builtin (?P<part><built-in [^\n>]+>) is currently not supported in Torchscript",
            r"(?P<part>Unknown type name '[^']+')",
            r"(?P<part>Tried to trace <[^\n]{1,80} but it is not part of the active trace)",
        ),
        "CAP058",
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
        "example does not fit the model",
        "The model itself refuses the example that the exporter calls it with: {part}.",
        "Call `model(*args)` with the same example first. Positional arguments go to forward's parameters in their order.",
        (
            r"(?P<part>forward\(\) (?:missing \d+ required|takes \d+ positional|got an unexpected keyword)[^\n]*)",
            r"(?P<part>mat1 and mat2 shapes cannot be multiplied[^\n]*)",
            r"(?P<part>expected input\[[^\n]*channels[^\n]*)",
            r"(?P<part>Sizes of tensors must match except in dimension[^\n]*)",
            r"(?P<part>index out of range in self)",
            r"(?P<part>Expected tensor for argument #1 'indices'[^\n]*)",
        ),
        "INP001",
        EXPORT,
        about_export=True,
    ),
)
