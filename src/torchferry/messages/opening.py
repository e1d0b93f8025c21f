"""What onnx and onnxruntime say of a file that they do not open."""

from collections.abc import Mapping
from typing import Any

from torchferry.messages.mechanism import CHECK, EXPORT, Mechanism


def _later_opset_takes(facts: Mapping[str, str]) -> bool:
    """Whether the operator came to take the type in a later version than its first."""
    import onnx

    versions = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", facts.get("op"))]
    takes = [any(facts.get("type") in c.allowed_type_strs for c in s.type_constraints) for s in sorted(versions, key=_version)]
    return bool(takes) and takes[-1] and not takes[0]


def _version(schema: Any) -> int:
    return int(schema.since_version)


def _is_standard(facts: Mapping[str, str]) -> bool:
    import onnx

    return onnx.defs.has(facts.get("op", ""))


_REFUSED_TYPE = r"Type '(?P<type>[\w()]+)' of input parameter \((?P<name>[^)]*)\) of operator \((?P<op>\w+)\) in node \((?P<node>[^)]*)\) is invalid"
_UNREGISTERED = (
    r"No Op registered for (?P<op>\w+) with domain_version of (?P<opset>\d+)",
    r"(?:ai\.onnx)?:?(?P<op>[\w.:]+?)(?:\(-?\d+\))? is not a registered function/op",
    r"No Op registered for (?P<op>\w+)",
    r"No schema registered for '?(?P<op>\w+)",
)
# said before whatever the tool that opens it says next
UNREADABLE = (
    Mechanism(
        "file is damaged, or no ONNX file",
        "What is at that path does not read as a model: cut short, a pointer of git-lfs, a page of HTML, or another format.",
        "Fetch it anew and compare its size; `torchferry check` says what it is.",
        (
            r"INVALID_PROTOBUF",
            r"Error parsing text-format [\w.:]*ModelProto",
            r"ORT model verification failed",
            r"does not have an ir_version set properly",
            r"Protobuf parsing failed",
            r"(?<![A-Za-z])DecodeError",
            r"ModelProto does not have a graph",
            r"Error parsing message(?: with type 'onnx)?",
            r"Wrong wire type in tag",
            r"No graph was found in the protobuf",
        ),
        "CHK003",
        CHECK,
    ),
)
MECHANISMS = (
    Mechanism(
        "custom operator unknown to the runtime",
        "The library given for custom operators has no entry `RegisterCustomOps`, or needs symbols that are not there: an extension of "
        "PyTorch is no library of onnxruntime operators.",
        "Build one against onnxruntime's custom-op API, and register it with `SessionOptions.register_custom_ops_library`.",
        (r"RegisterCustomOps", r"register_custom_ops_library[^\0]{0,300}?(?:Error|failed)"),
        "CHK012",
        CHECK,
    ),
    Mechanism(
        "model larger than 2 GB",
        "One protobuf message holds 2 GB at most, and the weights are in it.",
        "Write the weights beside the graph (`external_data=True`, `save_as_external_data=True`), and hand tools the path and not the "
        "loaded message; torchferry does so by itself.",
        (
            r"exceeds? (?:the )?maximum protobuf size",
            r"(?:larger|bigger|greater) than (?:the )?2 ?Gi?B",
            r"2 ?GB (?:limit|protobuf)",
            r"exceed\w* (?:the )?2 ?(?:GB|GiB)",
            r"EncodeError: Failed to serialize proto",
            r"ModelProto[^\n]{0,60}too large",
            r"Protobuf[^\n]{0,60}(?:2147483647|2 ?GB)",
        ),
        "",
        CHECK,
    ),
    Mechanism(
        "external data missing or misplaced",
        "The weights are in a file of their own ({data}), and it is not where the model says.",
        "Keep the two files together: the name is relative to the model's folder. Moved or renamed? Save anew from where both are.",
        (
            r"should be stored in (?P<data>[^\s,]+), but it doesn't exist",
            r"External data (?:path|file)[^\n]*?(?P<data>[\w./\\-]+\.\w+)[^\n]*?(?:does not exist|not found|doesn't exist|escapes)",
            r"Failed to load external data file \"+(?P<data>[^\"]+)",
            r"(?:model_path must not be empty|Cannot open|cannot get file size|Failed to open|No such file)[^\n]*?(?P<data>[\w./\\-]*\.(?:data|weight|bin|onnx_data))",
            r"(?P<data>[\w./\\-]+\.(?:onnx_data|onnx\.data))[^\n]*(?:not found|doesn't exist|does not exist|No such file|failed)",
            r"(?:external|tensor) (?:data|initializer)s? [^\n]{0,80}(?:out of bounds|are out of bounds|cannot be read|not accessible)",
            r"are out of bounds or can ?not be read in full",
            r"Absolute path not allowed for external data location",
            r"Deserialize tensor[^\n]*?GetFileLength for (?P<data>\S+) failed",
            r"filesystem error: in file_size: [^\n]*?\[\"?(?P<data>[^\"\]]+)",
            r"GetFileLength for (?P<data>\S+) failed",
            r"GetExtDataFromTensorProto|ExternalDataInfo|external initializer[^\n]{0,60}(?:fail|not)",
        ),
        "CHK004",
        CHECK,
    ),
    Mechanism(
        "file absent",
        "There is no file at that path, seen from the folder in which the program runs.",
        "Give an absolute path, or look with `os.path.exists` from the same program.",
        (
            r"NO_?SUCH_?FILE",
            r"Load model (?:from )?\S+ failed[.:]?\s*File doesn't exist",
            r"FileNotFoundError[^\n]*\.onnx\b",
            r"No such file or directory[^\n]*\.onnx\b",
        ),
        "",
        CHECK,
    ),
    Mechanism(
        "runtime older than the model (opset/IR)",
        "The file is of a newer release than this runtime reads: it says {got}, and {most} is the most that is taken.",
        "Install a newer onnxruntime, or export for the one there is (`opset_version=`, `torchferry export --target`); "
        "`torchferry check` lowers a mere stamp itself, and compares.",
        (
            r"Unsupported model IR version: (?P<got>\d+), max supported IR version: (?P<most>\d+)",
            r"Unsupported model IR version:? ?(?P<got>\d*)",
            r"Opset (?P<got>\d+) is under development[^\0]*?(?:till|up to) opset (?P<most>\d+)",
            r"Opset (?P<got>\d+) is under development",
            r"Current official support for domain [^\n]*? is till opset (?P<most>\d+)",
            r"(?:only \*?guarantees\*? support for models stamped)",
            r"(?:ir_version|IR version) (?P<got>\d+)[^\n]{0,60}(?:higher|newer|greater|not supported|unsupported)[^\n]*?(?P<most>\d*)",
            r"Your model (?:ir|opset)_version(?: is)? (?P<got>\d+)[^\n]*?(?:higher|than)[^\n]*?(?P<most>\d+)",
            r"newer ir_version \((?P<got>[\d.]+)\) than this parser was built against \((?P<most>[\d.]+)\)",
        ),
        "CHK008",
        CHECK,
    ),
    Mechanism(
        "opset too low for the operator",
        "`{op}` ({node}) takes {type} in later versions of ONNX, and not in the opset that this file is stamped with.",
        "Export with a later opset; or cast that input in the model.",
        (_REFUSED_TYPE,),
        "CHK010",
        CHECK,
        holds=_later_opset_takes,
    ),
    Mechanism(
        "opset too low for the operator",
        "`{op}` is an operator of ONNX, but not of the opset ({opset}) that this file is stamped with.",
        "Export with the opset that has it; the stamp and the nodes come from different tools otherwise.",
        (
            *_UNREGISTERED,
            r"Unrecognized attribute: (?P<part>\w+) for operator (?P<op>\w+)",
            r"Required attribute '(?P<part>\w+)' is missing",
            r"Node ?\([^)]*\)(?: Op \((?P<op>\w+)\))? has (?:in|out)put size \d+ not in range",
        ),
        "CHK010",
        CHECK,
        holds=lambda facts: "op" not in facts or _is_standard(facts),
    ),
    Mechanism(
        "custom operator unknown to the runtime",
        "`{op}` is no operator of ONNX, nor of this runtime, and no library was given that has it.",
        "Register the library with the operator (`SessionOptions.register_custom_ops_library`), or export without it: "
        "`torchferry.register_op`, or what it is made of.",
        _UNREGISTERED,
        "CHK012",
        CHECK,
    ),
    Mechanism(
        "type mismatch inside the graph",
        "Values of different types meet at {node}: {type}.",
        "Cast in the model (`.to(x.dtype)`); a constant or a shape is int64 where a float is wanted. `torchferry check` says which "
        "of the two is wrong, and mends what is plain.",
        (
            r"Type parameter \(\w+\)[^\n]*?bound to different types \((?P<type>[^\n]*?)\)? in node \((?P<node>[^)]*)\)",
            r"Type '(?P<type>[^']+)' of input parameter \([^)]*\) of operator \((?P<op>\w+)\) in node \((?P<node>[^)]*)\) is invalid",
            r"Type \((?P<type>[^\n]*?)\) of output arg \([^)]*\) of node \((?P<node>[^)]*)\)",
            r"Type Error: (?P<type>[^\n]{1,160})",
            r"\[TypeInferenceError\] (?P<type>[^\n]{1,160})",
            r"(?P<type>\w+ has inconsistent type [\w()]+)",
            r"(?P<type>typestr: \w+, has unsupported type: [\w()]+)",
            r"(?:element|data) types? (?P<type>[^\n]{0,60}) (?:differ|do not match|mismatch)[^\n]{0,60}(?:node|graph|operator)",
        ),
        "CHK015",
        CHECK,
    ),
    Mechanism(
        "target runtime lacks the operator",
        "This runtime has no implementation of `{op}` (node {node}) for the types or the version in the file.",
        "Another type (float32) or opset has one, or a newer runtime; `torchferry check` names what the installed one takes.",
        (
            r"Could not find an implementation for(?: the node)? (?P<node>[\w/.]*:)?(?P<op>\w+)(?:\(\d+\))?(?: node with name '(?P<node2>[^']*)')?",
            r"NOT_IMPLEMENTED[^\n]{0,120}?(?P<op>\w+)(?:\(\d+\))",
            r"Failed to find kernel for (?P<op>[\w.]+)",
            r"cannot resolve operator '(?P<op>\w+)' with opsets",
        ),
        "CHK014",
        CHECK,
    ),
    Mechanism(
        "recorded shapes contradict the graph",
        "Shapes that are written down in the file are not those that its nodes give ({part}): it was edited, or traced at another size.",
        "Delete the recorded ones (`del graph.value_info[:]`, and the outputs' dims) and infer anew.",
        (
            r"Inferred shape and existing shape differ in (?P<part>[^\n]{1,60})",
            r"(?P<part>Inferred (?:elem )?type differs from existing[^\n]{0,60})",
            r"(?P<part>Mismatch between number of (?:inferred|source)[^\n]{0,60})",
            r"MergeShapeInfo[^\n]{0,120}",
            r"Error merging shape info for output\. ?(?P<part>'[^']+')?",
            r"Expected shape from model of (?P<part>\{[^\n]*\}) does not match actual shape",
        ),
        "CHK019",
        CHECK,
    ),
    Mechanism(
        "graph invalid: scalar expected",
        "`{op}` ({node}) wants a scalar, and is given a tensor with an axis.",
        "Squeeze that input in the model; a newer exporter does.",
        (
            r"\(op_type:(?P<op>\w+), node name: ?(?P<node>[^)]*)\)[^\n]*(?:should be scalars?|must be (?:a )?scalar)",
            r"Input to '(?P<op>\w+)' op should be scalars",
            r"(?P<op>If|Loop) nodes? condition input must have exactly one element",
        ),
        "CHK019",
        CHECK,
    ),
    Mechanism(
        "graph invalid",
        "The graph breaks a rule of ONNX: {part}.",
        "It was edited or merged by a tool that left it so; `torchferry check` names the place, and mends what is plain.",
        (
            r"(?P<part>Nodes in a graph must be topologically sorted[^\n]{0,80})",
            r"(?P<part>Graph must be in single static assignment[^\n]{0,80})",
            r"(?P<part>Duplicate (?:definition|node|initializer)[^\n]{0,80})",
            r"(?P<part>This is an invalid model\. Error[^\n]{0,120})",
            r"(?P<part>Field '\w+' of '\w+' is required but missing)",
            r"(?P<part>Mismatched attribute type in '[^']*')",
            r"(?P<part>the graph is not acyclic)",
            r"(?P<part>Node input '[^']*' is not a graph input, initializer, or output)",
            r"(?P<part>Graph output \([^)]*\) does not exist in the graph)",
            r"(?P<part>\[ShapeInferenceError\][^\n]{0,120})",
            r"checker\.ValidationError: (?P<part>[^\n]{1,120})",
            r"(?P<part>INVALID_GRAPH)",
        ),
        "CHK029",
        CHECK,
    ),
    Mechanism(
        "opset cannot be converted",
        "onnx's version converter has no rule for `{op}`.",
        "Export at the wanted opset from the model instead of converting the file.",
        (
            r"No Adapter (?:From|To) Version \$?\d+ for (?P<op>\w+)",
            r"No Previous Version of (?P<op>\w+)",
            r"version_converter[^\0]{0,400}?Error",
        ),
        "TRN003",
        EXPORT,
    ),
)
