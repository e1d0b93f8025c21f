"""Convert small models of many architectures from an example alone, by us and by plain torch.onnx.export.

    python benchmarks/architectures.py docs/architectures.md [--only NAME] [--who ours,stock] [--anew] [--page-only]

Ours is given the example and nothing else. Stock is told which axes move, those that ours found, and must stand the same
calls: the example, and those that `tests/zoo/other_calls.py` makes of it. Each conversion runs in a process of its own, and
its answer is kept in `build/architectures/` as soon as it is known: a run that was stopped goes on where it was.
timm, torchvision and diffusers take part where they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import io
import json
import logging
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import onnxruntime
import torch

import torchferry

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "zoo"))
from architectures import ARCHITECTURES  # found by the line above, like the tests' own imports
from architectures_page import Answer, page
from other_calls import difference, eager, others
from pictures import PICTURES

SECONDS = {"ours": 600, "stock": 180}  # of the processor, for one conversion: a busy machine must not change what is found
KEPT = Path("build/architectures")
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime", "transformers", "timm", "torchvision", "diffusers")
Inputs = Mapping[str, Any]
Feeds = Callable[[Inputs], dict[str, Any]]


def ours(name: str, model: torch.nn.Module, example: Inputs, folder: Path) -> Answer:
    """Return what torchferry came to with the example alone."""
    result = torchferry.export(model, (), folder / "ours.onnx", kwargs=copy.deepcopy(dict(example)), check=False)
    seconds = spent()
    steps = {step.stage: round(step.seconds, 1) for step in result.history.best.steps}
    codes = [d.code for d in result.diagnoses if d.severity != "note"]
    bound = result.history.best.value("inputs")
    told = {"name": name, "who": "ours", "seconds": seconds, "steps": steps, "codes": codes}
    if not result.ok:
        first = next((d for d in result.diagnoses if d.severity == "error"), None)
        return Answer(
            **told, verdict="refused", words=f"{first.code}: {first.message} ({first.location})" if first else "refused"
        )
    dims = [str(dim) for dim in bound.signature.dims]
    axes = {s.name: [a for a, n in enumerate(s.shape) if isinstance(n, str)] for s in bound.signature.inputs}
    right, taken, wrong = compared(model, example, result.path, lambda inputs: result.feeds((), dict(inputs)))
    verdict = "wrong" if wrong else "narrower" if result.given_up else "right"
    found = {"dims": dims, "axes": axes, "given_up": list(result.given_up), "fixed": fixed_axes(bound)}
    return Answer(**told, **found, verdict=verdict, right=right, taken=taken, words=wrong)


def fixed_axes(bound: Any) -> list[str]:
    """Return the axes of pictures and texts that stay as they are, with the reason that was found."""
    told = []
    for spec in bound.signature.inputs:
        for axis, (size, why) in enumerate(zip(spec.shape, spec.why or ("",) * len(spec.shape), strict=True)):
            if isinstance(size, int) and why:
                told.append(f"{spec.name}[{axis}] = {size} ({why})")
    return told


def stock(name: str, model: torch.nn.Module, example: Inputs, folder: Path) -> Answer:
    """Return what plain torch.onnx.export came to; told which axes move, where ours found any and the arguments are plain."""
    path = folder / "stock.onnx"
    known = kept(KEPT).get((name, "ours"))
    axes = known.axes if known else {}
    plain = all(isinstance(value, torch.Tensor) for value in example.values())
    shapes = {k: dict.fromkeys(axes.get(k, ()), torch.export.Dim.DYNAMIC) or None for k in example} if plain else None
    given = copy.deepcopy(dict(example))
    torch.onnx.export(model, (), str(path), kwargs=given, dynamic_shapes=shapes, dynamo=True, verbose=False)
    seconds = spent()
    right, taken, wrong = compared(model, example, path, _feeds_of(path))
    return Answer(name, "stock", "wrong" if wrong else "right", seconds, right=right, taken=taken, words=wrong)


def compared(model: torch.nn.Module, example: Inputs, path: Path, feeds: Feeds) -> tuple[int, int, str]:
    """Return at how many calls a file is right, how many the model itself takes, and what is wrong at the first wrong one."""
    from torchferry.inputs.binding.flat import is_output
    from torchferry.inputs.binding.trees import outputs

    session = onnxruntime.InferenceSession(str(path))
    right = taken = 0
    wrong = ""
    for what, inputs in [("the example", example), *others(example)]:
        try:
            wanted = [leaf for _, leaf in outputs(eager(model, inputs)) if is_output(leaf)]
        except Exception:  # the model itself does not take this call, whatever it says
            continue
        taken += 1
        try:
            problem = _problem(wanted, session.run(None, feeds(inputs)), inputs.get("attention_mask"))
        except torchferry.FeedError:
            continue  # declared narrower than this, and said so
        except Exception as error:  # onnxruntime raises its own kinds, and any of them is a wrong answer
            problem = str(error).splitlines()[0][:200]
        right += not problem
        wrong = wrong or (f"{what}: {problem}" if problem else "")
    return right, taken, wrong


def _problem(wanted: list[Any], got: list[Any], mask: Any) -> str:
    if len(wanted) != len(got):
        return f"{len(got)} outputs instead of {len(wanted)}"
    return next((p for w, g in zip(wanted, got, strict=True) if (p := difference(w, g, mask))), "")


def _feeds_of(path: Path) -> Feeds:
    """Return how a file of plain torch.onnx.export is fed: by name, and what is nested by its order."""
    names = [i.name for i in onnxruntime.InferenceSession(str(path)).get_inputs()]

    def feeds(inputs: Inputs) -> dict[str, Any]:
        if set(names) <= inputs.keys():
            return {n: inputs[n].numpy() for n in names}
        tensors = [t for t in torch.utils._pytree.tree_leaves(dict(inputs)) if isinstance(t, torch.Tensor)]
        return {n: t.numpy() for n, t in zip(names, tensors, strict=True)}

    return feeds


TOOLS: dict[str, Callable[[str, torch.nn.Module, Inputs, Path], Answer]] = {"ours": ours, "stock": stock}


# --- each in a process of its own ------------------------------------------------------------------------


def answer(name: str, build: Callable[[], Any], who: str) -> Answer:
    """Return one tool's answer about one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(name, build, who, Path(folder), theirs))
        process.start()
        theirs.close()
        try:
            return mine.recv()  # type: ignore[no-any-return]
        except EOFError:
            process.join()
            late = process.exitcode == -signal.SIGXCPU
            words = f"no answer after {SECONDS[who]} s of work" if late else f"the process died: {process.exitcode}"
            return Answer(name, who, "busy" if late else "refused", SECONDS[who], words=words)
        finally:
            process.kill()
            process.join()


def spent() -> float:
    """Return the seconds of work that this process and those that it waited for have done."""
    return sum(sum(resource.getrusage(of)[:2]) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _work(name: str, build: Callable[[], Any], who: str, folder: Path, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS[who], SECONDS[who] + 10))
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            model, example = build()
            found = TOOLS[who](name, model, example, folder)
    except Exception as error:  # the exporters raise anything; here it is an answer like any other
        lines = [line for line in str(error).splitlines() if line.strip()]
        words = f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
        found = Answer(name, who, "refused" if who == "stock" else "crashed", spent(), words=words)
    pipe.send(found)


def kept(folder: Path) -> dict[tuple[str, str], Answer]:
    """Return the latest answer about each architecture by each tool."""
    lines = (json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines())
    answers = sorted((Answer(**line) for line in lines), key=lambda a: a.when)
    return {(a.name, a.who): a for a in answers}


def architectures() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what can be built here."""
    yield from ((f"transformers/{name}", build) for name, build in ARCHITECTURES.items())
    for name, build in PICTURES.items():
        if importlib.util.find_spec(name.split("/")[0]):
            yield name, build


def main() -> None:
    """Sweep, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--only", default="", help="architectures whose name has one of these, parted by commas, in it")
    parser.add_argument("--who", default="ours,stock")
    parser.add_argument("--anew", action="store_true", help="do not count what earlier runs found out")
    parser.add_argument("--page-only", action="store_true", help="write the page from what is kept, measure nothing")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    known = {} if options.anew else kept(KEPT)
    wanted = [(n, b) for n, b in architectures() if any(part in n for part in options.only.split(","))]
    for who in () if options.page_only else options.who.split(","):
        for name, build in wanted:
            if (name, who) in known:
                continue
            found = replace(answer(name, build, who), when=time.time())
            with (KEPT / f"{who}.jsonl").open("a") as file:
                print(json.dumps(asdict(found)), file=file)
            told = f"{who} {name}: {found.verdict} {found.seconds:.0f} s {found.right}/{found.taken}"
            print(told, found.words, *found.dims, *found.given_up, flush=True)
    versions = [f"{n} {metadata.version(n)}" for n in PACKAGES if importlib.util.find_spec(n)]
    everything = [*(f"transformers/{name}" for name in ARCHITECTURES), *PICTURES]
    options.page.write_text(page(kept(KEPT), everything, versions, SECONDS), encoding="utf-8")


if __name__ == "__main__":
    main()
