"""What may be asked of a command, and the words for it: each is said once here, whatever commands take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# The parameters of `export`, `verify` and `check` are the fields of an Ask, by name; the words users type are their options.
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="package.module:name or file.py:name, where name is a function that returns (model, args), with the example call; "
        "or program.pt2, or hf:DIRECTORY",
    ),
]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME:SHAPE[:DTYPE]", help="make an example input, as in x:2x3:float32 or ids:1x8:int64"),
]
Range = Annotated[
    list[str] | None, typer.Option("--range", metavar="DIM=LOW..HIGH", help="sizes that must work, as in batch=1..64")
]
Domain = Annotated[
    list[str] | None,
    typer.Option("--domain", metavar="INPUT=LOW..HIGH", help="the values that an input may have, as in t=0..999"),
]
Tolerate = Annotated[
    str | None, typer.Option("--tolerance", metavar="RTOL[,ATOL]", help="how much an output may differ; default: derived")
]
Target = Annotated[str | None, typer.Option(metavar="RUNTIME", help="what must load the file: onnxruntime==1.17, or 'opset 15'")]
Repairs = Annotated[Literal["off", "safe", "unsafe"], typer.Option("--repair", help="which repairs may be made")]
Format = Annotated[Literal["text", "json", "markdown", "sarif"], typer.Option("--format", help="how stdout is written")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="also write a report: .html, .md, .json, .sarif or .txt")]
TimeLimit = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="how long a stage may take before it counts as hung")]
Trials = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="how many ordinary comparisons with the model; those directed at something come on top"
    ),
]
Mutants = Annotated[int | None, typer.Option(metavar="N", min=0, help="how many mutants of the file trials are held against")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="where the values of the trials start from")]
Reproducer = Annotated[Path | None, typer.Option(metavar="DIR", help="on a mismatch, write an input and a script that show it")]
Trust = Annotated[
    bool,
    typer.Option("--trust", "--trust-remote-code", help="run the code that is in a .pt2 program, or beside an hf: model"),
]
Seconds = Annotated[
    float | None, typer.Option(metavar="SECONDS", min=0.1, help="how long all trials may take; the result says what was left out")
]
Eval = Annotated[
    bool | None,
    typer.Option("--eval/--no-eval", help="call .eval() on the model; by default on one that is made from its class"),
]
Example = Annotated[
    list[Path] | None,
    typer.Option(
        "--example", metavar="CALL.npz", help="a further call that must work: an array for each of forward's parameters"
    ),
]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="logs and tracebacks, on stderr; -vv: those of every library")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="no progress on stderr")]

# of `generate` and `chat`
Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="what `torchferry export hf:MODEL -o DIRECTORY` wrote")]
NewTokens = Annotated[int, typer.Option("--max-new-tokens", metavar="N", min=1, help="how much to write at most")]
Threads = Annotated[int, typer.Option(metavar="N", min=0, help="threads of onnxruntime; 0: all cores")]
