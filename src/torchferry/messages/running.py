"""What onnxruntime says of a call: names, types and sizes of what is fed, and nodes that fail on them."""

from torchferry.messages.mechanism import CHECK, VERIFY, Mechanism

MECHANISMS = (
    Mechanism(
        "input dtype differs from the model's",
        "An input is fed as {got}, and the file takes {want}.",
        "Cast it (`x.astype(...)`): numpy makes float64 and int64 where nothing is said. `torchferry.InferenceSession` casts where "
        "nothing is lost, and says so.",
        (
            r"Unexpected input data type\.? ?(?:for input[^\n]*?)?Actual: ?\(+(?P<got>[^\n]*?)\)+ ?, ?expected: ?\(+(?P<want>[^\n]*?)\)+",
            r"Unexpected input data type",
            r"Tensor element data type discovered: (?P<got>\w+) metadata expected: (?P<want>\w+)",
            r"A (?P<want>\w+) tensor's data must be type of [^\n]{0,40}(?P<got>)",
            r"(?:expects?|expected|wants?) (?:element type|a? ?tensor of type|input[^\n]{0,30}type)[^\n]{0,10}(?P<want>[\w()]+)[^\n]{0,30}(?:got|but|received)[^\n]{0,20}?(?P<got>[\w()]+)",
            r"Tensor (?:element )?type mismatch[^\n]{0,60}",
        ),
        "RUN004",
        CHECK,
    ),
    Mechanism(
        "input names differ from the model's",
        "What is fed and what the file takes have different names: {name}.",
        "Feed by the file's own names: `[i.name for i in session.get_inputs()]`. An export drops inputs that nothing uses, and "
        "renames without `input_names`; a tokenizer may give fewer (`return_token_type_ids=True`) or more.",
        (
            r"Invalid Feed Input Name: ?(?P<name>\S+)",
            r"Required inputs \(\[(?P<name>[^\]]*)\]\) are missing from input feed",
            r"Missing Input: (?P<name>\S+)",
            r"Model requires \d+ inputs\. Input Feed contains \d+",
            r"Invalid Output Name: ?(?P<name>\S+)",
            r"input '?(?P<name>[\w.:]+)'? is missing in 'feeds'",
            r"Invalid input name: ?(?P<name>\S+)",
            r"Unknown input name:? '?(?P<name>[\w.:]+)",
            r"Input name: '(?P<name>[^']+)' is not in the metadata",
            r"(?:Gather|Embedding)[^\n]*indices element out of data bounds, idx=-?\d+ must be within the inclusive range \[-?\d+, ?(?P<most>[0-7])\]",
        ),
        "RUN001",
        CHECK,
    ),
    Mechanism(
        "index beyond a table",
        "{node} looks up an index that its table does not have (0 to {most}): ids of another vocabulary, positions past the longest "
        "text, or one input fed in the place of another.",
        "Compare the tokenizer's vocabulary and the longest length with the model's config; feed inputs by name.",
        (
            r"Name:'(?P<node>[^']*)'[^\n]*indices element out of data bounds, idx=(?P<got>-?\d+) must be within the inclusive range \[-?\d+, ?(?P<most>\d+)\]",
            r"indices element out of data bounds",
            r"index(?:es)? (?:is )?out of (?:data )?bounds?[^\n]{0,60}(?:Gather|onnx)",
        ),
        "RUN015",
        CHECK,
    ),
    Mechanism(
        "dynamic dimension names wrong",
        "Two sizes that differ ({part}) have one name in the file, so the runtime gives them one buffer.",
        "Give axes that may differ names of their own (encoder and decoder length, past and present).",
        (
            r"Shape mismatch attempting to re-use buffer\.? ?(?P<part>\{[^\n]*?\} != \{[^\n]*?\})?",
            r"Validate usage of dim_value",
            r"(?P<part>dim_param[^\n]{0,40}) (?:conflict|mismatch|differ)",
        ),
        "RUN014",
        CHECK,
    ),
    Mechanism(
        "input shape differs from the model's",
        "`{name}` is fed with {got}, and the file takes {want}.",
        "Give it the size that the file was exported for (an image side is often a multiple of the network's stride, 32), or export "
        "with that size free.",
        (
            r"Got invalid dimensions for input: (?P<name>\S+)[^\0]*?index: \d+ Got: (?P<got>\d+) Expected: (?P<want>\d+)",
            r"Got invalid dimensions for input",
            r"Tensor's size\((?P<want>\d+)\) does not match data length\((?P<got>\d+)\)",
            r"Invalid rank for input: (?P<name>\S+) Got: (?P<got>\d+) Expected: (?P<want>\d+)",
            r"Got: (?P<got>\d+) Expected: (?P<want>\d+)[^\n]*Invalid rank for input: (?P<name>\S+)",
            r"Invalid rank for input",
            r"Non concat axis dimensions must match: Axis \d+ has mismatched dimensions of (?P<got>\d+) and (?P<want>\d+)",
            r"Input channels C is not equal to kernel channels[^\n]*?C: (?P<got>\d+) kernel channels: (?P<want>\d+)",
            r"running (?:MatMul|Gemm|FusedMatMul|Conv\w*|Concat) node\. Name:'(?P<name>[^']*)'[^\n]*(?:mismatch|must match|not equal|incompatible)",
            r"(?:MatMul|GEMM):? ?[Dd]imension mismatch",
            r"(?:unexpected|invalid|wrong) (?:input )?(?:dims?|dimensions?|shape)s? for (?:input )?'?(?P<name>[\w.:]+)[^\n]*",
            r"Input (?P<name>[\w.:]+)[^\n]{0,40}(?:has|with) (?:shape|rank|dim)[^\n]{0,60}(?:expect|but)",
            r"Static dim (?P<want>\d+)[^\n]{0,60}(?:got|but)[^\n]{0,20}(?P<got>\d+)",
        ),
        "RUN012",
        CHECK,
    ),
    Mechanism(
        "input is no array",
        "What is fed is no numpy array (a list, a torch tensor, a string).",
        "`x.numpy()`, `np.asarray(x)`; `torchferry.InferenceSession` takes tensors and lists too.",
        (
            r"Input must be a list of dictionaries or a single numpy array",
            r"INVALID_ARGUMENT[^\n]{0,60}(?:not a (?:numpy|tensor)|numpy array)",
            r"Unable to handle object of type <class '(?P<got>[\w.]+)'>",
            r"(?:The )?input (?:feed|data) (?:must|should) be (?:a )?(?:dict|numpy)",
        ),
        "RUN006",
        CHECK,
    ),
    Mechanism(
        "memory",
        "A value of that size does not fit into memory: {part}.",
        "Smaller batches or images; `enable_mem_pattern` and the arena's limit where a GPU is shared. `torchferry check` names the node.",
        (
            r"(?P<part>Failed to allocate memory for requested buffer of size \d+)",
            r"(?P<part>failed to allocate a buffer of size \d+)[^\n]*(?:ERROR_CODE|onnx)",
            r"(?P<part>BFCArena[^\n]{0,80}(?:alloc|memory)[^\n]{0,60})",
            r"onnxruntime[^\n]{0,200}(?P<part>bad_?[ ]?alloc\w*)",
            r"(?P<part>bad_?[ ]?alloc\w*)[^\n]{0,200}onnxruntime",
            r"Status Message: (?P<part>bad allocation|std::bad_alloc)",
            r"onnxruntime[^\n]{0,200}(?P<part>out of memory)",
        ),
        "RUN018",
        CHECK,
    ),
    Mechanism(
        "attention fused with wrong numbers",
        "The optimiser put an attention node into the file with a number of heads, or a hidden size, that is not the model's.",
        "Give `num_heads` and `hidden_size` of the model's config to the optimiser, or leave out its attention fusion.",
        (
            r"running (?P<node>\w*Attention) node[^\n]*divis[ai]ble by[^\n]*num_heads",
            r"assert num_heads > 0",
            r"hidden_size % num_heads",
        ),
        "",
        CHECK,
    ),
    Mechanism(
        "shape baked at trace",
        "At {node} a size of the export's example is still in the graph ({part}), and the input has another.",
        "Export with that size free: `torchferry verify` tells for which sizes a file holds, `torchferry export` makes one that holds "
        "for all.",
        (
            r"running Reshape node\. Name:'(?P<node>[^']*)'[^\0]*?(?P<part>Input shape:\{[^\n]*)",
            r"(?P<part>The input tensor cannot be reshaped to the requested shape[^\n]*)",
            r"running (?:Expand|Where|Add|Mul|Sub|Div|Equal|Tile|Split\w*|Slice|Scatter\w*|Pad|LSTM|GRU|RNN|Loop|Scan|If|BiasGelu|SkipLayer\w+|Attention|Einsum) node\. Name:'(?P<node>[^']*)'[^\n]*?(?P<part>Status Message:[^\n]*)",
            r"(?P<part>Attempting to broadcast an axis by a dimension other than 1\.? ?[^\n]{0,40})",
            r"(?P<part>(?:invalid expand shape|Cannot split using values|initial_[hc] must have shape|BroadcastIterator::)[^\n]{0,100})",
            r"(?P<part>(?:left|right) operand cannot broadcast[^\n]{0,60})",
            r"(?P<part>Expected input at \S+ to be (?:equal to|of the form|>=|<=) [^\n]{0,40}, but got [^\n]{0,20})",
        ),
        "RUN013",
        VERIFY,
    ),
    Mechanism(
        "cache asked for that was not exported",
        "The directory was exported with a key-value cache and is loaded without one, or the other way round: {part}.",
        "Load it as it was exported, or export anew: `torchferry export hf:DIRECTORY -o onnx/` writes both steps, and `torchferry generate` "
        "compares the text.",
        (
            r"(?P<part>`use_cache` was set to `?\w+`? but the loaded model only supports `use_cache=\w+`)",
            r"(?P<part>parameters combination use_cache=\w+[^\n]{0,60} is not supported)",
        ),
        "",
        "torchferry export hf:DIRECTORY -o onnx/",
        about_export=True,
    ),
    Mechanism(
        "a node fails on this input",
        "{node} fails while the file runs: {part}.",
        "`torchferry check model.onnx` with the same feed says which input and which size it comes from.",
        (
            r"Non-zero status code returned while running (?P<node>\w+ node\. Name:'[^']*')[^\n]*?(?P<part>Status Message:[^\n]{0,200})",
            r"Non-zero status code returned while running (?P<node>\w+) node",
        ),
        "RUN022",
        CHECK,
    ),
)
