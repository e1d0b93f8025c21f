"""The commands and their options. Heavy libraries are loaded inside a command, and only when it does its work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from torchferry import __version__
from torchferry.cli.options import (
    Directory,
    Domain,
    Eval,
    Example,
    Format,
    Input,
    Model,
    Mutants,
    NewTokens,
    Quiet,
    Range,
    Repairs,
    Report,
    Reproducer,
    Seconds,
    Seed,
    Target,
    Threads,
    TimeLimit,
    Tolerate,
    Trials,
    Trust,
    Verbose,
)
from torchferry.errors import UsageError

INTRO = "torchferry carries a PyTorch model across to ONNX and checks that nothing fell overboard."

EXAMPLES = """\b
Examples:
  torchferry export torchferry.demo:mlp -o mlp.onnx
  torchferry export torchferry.demo:convnet -o convnet.onnx --range batch_size=1..16 --report convnet.html
  torchferry verify torchferry.demo:mlp mlp.onnx
  torchferry verify --certificate mlp.onnx
  torchferry check mlp.onnx
  torchferry explain --list
  torchferry doctor
\b
A MODEL is one of:
  package.module:name   a function that returns a model, or (model, args), or (model, args, kwargs);
  path/to/file.py:name  or an nn.Module, or its class
  program.pt2           a saved torch.export program; reading it runs code that is in it: --trust
  hf:DIRECTORY          a transformers model in a local directory: config.json and safetensors
\b
Exit codes: 0 verified, 1 finished but not equivalent, 2 usage, 3 could not be loaded or converted,
4 a run failed. Results go to stdout, progress to stderr."""

COMMANDS = ("export", "verify", "check")  # what takes the settings of a project

app = typer.Typer(
    help=INTRO,
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _codes(begun: str) -> list[tuple[str, str]]:
    """Return the codes that begin so, for the shell to complete."""
    from torchferry.catalogue import load

    return [(entry.code, entry.slug) for entry in load() if entry.code.startswith(begun.upper())]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"torchferry {__version__}")
        raise typer.Exit


def _work(kind: Literal["export", "verify", "check"], *, context: typer.Context, **asked: Any) -> NoReturn:
    """Do what was asked for, and leave with its exit code; what was not said is left to the defaults of an Ask."""
    from torchferry.cli.work import Ask, work

    said: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in asked.items() if v is not None}
    by_project = [n for n in said if getattr(context.get_parameter_source(n), "name", "") == "DEFAULT_MAP"]
    said["settings"] = tuple(f"{n.replace('_', '-')} = {said[n]}" for n in by_project)
    raise typer.Exit(work(Ask(kind, words=tuple(context.obj), **said)))


@app.callback()
def torchferry(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version")] = False,
) -> None:
    """Say what the commands are."""
    if context.invoked_subcommand in COMMANDS and not {"-h", "--help"} & set(context.obj or ()):
        from torchferry.cli.settings import read

        context.default_map = dict.fromkeys(COMMANDS, read(Path.cwd()).options)


@app.command(
    epilog="""\b
Examples:
  torchferry export torchferry.demo:mlp
  torchferry export torchferry.demo:mlp --input x:4x16 --dynamic x:batch,_ --range batch=1..64 --format json
  torchferry export torchferry.demo:convnet --opset 13 --repair off -q"""
)
def export(
    context: typer.Context,
    model: Model,
    *,
    file: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="the file to write; for a model that generates, a directory")
    ] = Path("model.onnx"),
    task: Annotated[
        Literal["text-generation", "text2text-generation", "automatic-speech-recognition"] | None,
        typer.Option(help="write a directory for `torchferry generate`"),
    ] = None,
    precision: Annotated[
        Literal["int8", "int4"] | None, typer.Option(help="with a directory: weights in fewer bits, and what that costs")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="with a directory: where its tokenizer is taken from")
    ] = None,
    inputs: Input = None,
    example: Example = None,
    input_names: Annotated[str | None, typer.Option(metavar="A,B", help="what the file's inputs are called")] = None,
    output_names: Annotated[str | None, typer.Option(metavar="A,B", help="what the file's outputs are called")] = None,
    dynamic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:AXES", help="name the axes that move, as in ids:batch,length or x:batch,_; or none"),
    ] = None,
    ranges: Range = None,
    domain: Domain = None,
    tolerance: Tolerate = None,
    opset: Annotated[int | None, typer.Option(metavar="N", min=1, help="the file's opset; default: the lowest that does")] = None,
    target: Target = None,
    repair: Repairs = "safe",
    format: Format = "text",
    report: Report = None,
    time_limit: TimeLimit = 600.0,
    trials: Trials = 64,
    mutants: Mutants = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    noise: Annotated[Literal["input"] | None, typer.Option(help="make each draw of random numbers an input of the file")] = None,
    patch: Annotated[
        Path | None, typer.Option("--write-patch", metavar="FILE", help="write the repairs of your source as a patch")
    ] = None,
    reproducer: Reproducer = None,
    trust: Trust = False,
    evaluate: Eval = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Convert a model to ONNX, and verify the file against the model."""
    _work("export", **locals())


@app.command(
    epilog="""\b
Examples:
  torchferry export torchferry.demo:mlp -o mlp.onnx -q
  torchferry verify torchferry.demo:mlp mlp.onnx --trials 20
  torchferry verify --certificate mlp.onnx"""
)
def verify(
    context: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="the model, named as for `export`")] = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.onnx", help="the file, from any exporter; or a directory that `export` made")
    ] = None,
    *,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.onnx", help="show what was verified when a file, or a directory, was made")
    ] = None,
    inputs: Input = None,
    example: Example = None,
    ranges: Range = None,
    domain: Domain = None,
    tolerance: Tolerate = None,
    target: Target = None,
    format: Format = "text",
    report: Report = None,
    time_limit: TimeLimit = 600.0,
    trials: Trials = 64,
    mutants: Mutants = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    reproducer: Reproducer = None,
    trust: Trust = False,
    evaluate: Eval = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Compare an ONNX file from any exporter, or a directory that generates, with its model."""
    if certificate is not None:
        from torchferry.cli.certificate import show

        raise typer.Exit(show(certificate, format))
    if model is None or file is None:
        raise UsageError("name a model and a file, as in `torchferry verify package.module:name model.onnx`")
    if Path(model).suffix.lower() == ".onnx" and file.suffix.lower() != ".onnx":
        raise UsageError(f"the model comes first: `torchferry verify {file} {model}`")
    _work("verify", **locals())


@app.command(
    epilog="""\b
Examples:
  torchferry export torchferry.demo:mlp -o mlp.onnx -q
  torchferry check mlp.onnx
  torchferry check mlp.onnx --target onnxruntime==1.17 -o mended.onnx"""
)
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="the file, from anywhere")],
    *,
    data: Annotated[
        list[Path] | None, typer.Option("--data", metavar="FEEDS.npz", help="what will be fed: an array for each input")
    ] = None,
    target: Target = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="write the mended file here")] = None,
    repair: Repairs = "safe",
    format: Format = "text",
    report: Report = None,
    time_limit: TimeLimit = 600.0,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Say what is wrong with an ONNX file, without its model."""
    _work("check", **locals())


@app.command()
def generate(
    directory: Directory,
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="the text to go on from")],
    *,
    max_new_tokens: NewTokens = 40,
    sample: Annotated[bool, typer.Option("--sample", help="draw the tokens instead of taking the likeliest")] = False,
    temperature: Annotated[float, typer.Option(metavar="T", min=0.01, help="with --sample: how freely")] = 1.0,
    top_p: Annotated[float, typer.Option(metavar="P", min=0.01, max=1.0, help="with --sample: from the likeliest share")] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="with --sample: the same seed writes the same text")] = 0,
    threads: Threads = 0,
    format: Annotated[Literal["text", "json"], typer.Option("--format", help="how it is written")] = "text",
) -> None:
    """Let an exported language model go on from a prompt."""
    from torchferry.cli.generate import run

    raise typer.Exit(
        run(
            directory,
            prompt,
            max_new_tokens=max_new_tokens,
            sample=sample,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            threads=threads,
            form=format,
        )
    )


@app.command()
def chat(
    directory: Directory,
    *,
    max_new_tokens: NewTokens = 60,
    greedy: Annotated[bool, typer.Option("--greedy", help="take the likeliest token instead of drawing")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="the same seed gives the same answers")] = None,
    threads: Threads = 0,
) -> None:
    """Talk with an exported language model; each line is answered, Ctrl-D ends it."""
    from torchferry.cli.chat import run

    raise typer.Exit(run(directory, max_new_tokens=max_new_tokens, sample=not greedy, seed=seed, threads=threads))


@app.command(
    epilog="""\b
Examples:
  torchferry explain --list
  torchferry explain --list --format json
  torchferry explain --error "Exporting the operator 'aten::fft_fft2' to ONNX opset version 17 is not supported"

\b
A traceback goes through stdin: torchferry explain < traceback.txt
A script's errors are explained as they come: python -m torchferry script.py"""
)
def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="a code such as CAP003, or a slug", autocompletion=_codes)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="all diagnoses, one on each line")] = False,
    error: Annotated[str | None, typer.Option("--error", help="an error of torch.onnx, onnxruntime or another tool")] = None,
    format: Annotated[Literal["text", "json", "markdown"], typer.Option("--format", help="how the page is written")] = "text",
) -> None:
    """Say what a diagnosis means, or an error of another tool, and what to do about it."""
    from torchferry.cli.explain import listing, message, page

    if sum((code is not None, list_, error is not None)) > 1:
        raise UsageError("give one of a code, `--list` and `--error`")
    if code is not None:
        raise typer.Exit(page(code, format))
    if list_:
        raise typer.Exit(listing(format))
    if error is None and sys.stdin.isatty():
        raise UsageError(
            "give a code, as in `torchferry explain CAP003`, or `--list`, or `--error TEXT`, or a traceback through stdin"
        )
    raise typer.Exit(message(sys.stdin.read() if error is None else error, format))


@app.command(
    epilog="""\b
Examples:
  torchferry doctor
  torchferry doctor --format json"""
)
def doctor(format: Annotated[Literal["text", "json"], typer.Option("--format", help="how it is written")] = "text") -> None:
    """Say what is installed, what it can do, and what does not fit."""
    from torchferry.cli.doctor import examine

    raise typer.Exit(examine(format))
