"""CPU seconds a token: a GPT-2 of real size with random weights, on torchferry's export and on its peers, in one run.

    python benchmarks/generate.py --work /tmp/generate [--threads 1,2] [--rounds 5] [--peers PYTHON] [--mobius PYTHON]

The engines take turns, so that a machine shared with others slows all of them alike; read the ratios, not the times.
Ratios are of CPU time, of all threads together: where other work shares the cores, time on the clock says little. The last
column is the clock's, the best of all rounds: with two threads on a quiet machine, that is the one to read.
`--peers` names a Python with optimum-onnx and ctranslate2 (transformers < 4.58), `--mobius` one with mobius-onnx:

    python -m venv peers && peers/bin/pip install 'transformers==4.57.*' torch optimum-onnx onnxruntime ctranslate2

An engine that is missing is named, and the others are measured. onnxruntime-genai's builder refuses GPT-2, so it is not among
them. Each engine lives in a process of its own, which this file is run in again with `--serve`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROMPT, NEW = 32, 64
OURS = ("torch eager", "torch compiled", "torchferry", "torchferry int8", "torchferry int4")
PEERS = ("optimum", "ctranslate2", "ctranslate2 int8")
MOBIUS = ("mobius",)


def main() -> None:
    """Prepare what is missing, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="a directory for the models; reused when it is there")
    parser.add_argument("--threads", default="1,2", help="how many; several, with commas, one after the other")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", help="a Python with optimum-onnx and ctranslate2")
    parser.add_argument("--mobius", help="a Python with mobius-onnx")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve, asked.work, int(asked.threads))
        return
    prepare(asked.work, asked.layers)
    pythons = {**dict.fromkeys(OURS, sys.executable), **dict.fromkeys(PEERS, asked.peers), **dict.fromkeys(MOBIUS, asked.mobius)}
    for threads in map(int, asked.threads.split(",")):
        engines = {name: Engine(name, python, asked.work, threads) for name, python in pythons.items() if python}
        for name in [name for name, engine in engines.items() if not engine.ready]:
            print(f"{name} is left out: {engines.pop(name).why}", file=sys.stderr)
        for _ in range(asked.rounds):
            for engine in engines.values():
                engine.measure()
        table(engines, threads)
        for engine in engines.values():
            engine.end()
    for name in (name for name, python in pythons.items() if not python):
        print(f"{name} is left out: no Python was named that has it (see --help)")
    accuracy(asked.work)


def prepare(work: Path, layers: int) -> None:
    """Make the model and its exports, unless they are there."""
    import torch
    import transformers

    from torchferry.runtime.quantise import quantise
    from torchferry.tasks import export_directory

    work.mkdir(parents=True, exist_ok=True)
    if not (work / "torch").exists():
        torch.manual_seed(0)
        transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers)).save_pretrained(work / "torch")
    exact = work / "torchferry"
    if not exact.exists():
        began = time.perf_counter()
        export_directory(transformers.GPT2LMHeadModel.from_pretrained(work / "torch").eval(), exact)
        print(f"exported in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    for precision in ("int8", "int4"):
        place = work / f"torchferry {precision}"
        if not place.exists():
            shutil.copytree(exact, place, ignore=shutil.ignore_patterns("*.onnx*", "torchferry.json"))
            quantise(exact / "model.onnx", place / "model.onnx", precision)


class Engine:
    """A process that generates when asked to, and says how long it took."""

    def __init__(self, name: str, python: str, work: Path, threads: int) -> None:
        command = [python, __file__, "--work", str(work), "--threads", str(threads), "--serve", name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.prefill: list[float] = []  # CPU seconds
        self.token: list[float] = []
        self.clock: list[float] = []  # seconds a token
        self.why = self._read()
        self.ready = self.why == "ready"

    def measure(self) -> None:
        """Time one prompt with a single new token, then with many: the difference is what the others took."""
        (first, begun), (many, ended) = self._ask(1), self._ask(1 + NEW)
        self.prefill.append(first)
        self.token.append((many - first) / NEW)
        self.clock.append((ended - begun) / NEW)

    def end(self) -> None:
        """Let the process go."""
        self.process.communicate()

    def _ask(self, new: int) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{new}\n")
        self.process.stdin.flush()
        cpu, clock = map(float, self._read().split())
        return cpu, clock

    def _read(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("> "):
                return line[2:].strip()
        return "it ended"


def table(engines: dict[str, Engine], threads: int) -> None:
    """Print milliseconds and ratios to the first engine; a ratio is the median of those of each round."""
    base = next(iter(engines.values()))
    print(f"GPT-2, prompt of {PROMPT}, {NEW} new tokens, {threads} thread{'s' if threads > 1 else ''}, {len(base.token)} rounds")
    print(f"{'engine':<20}{'ms a token':>12}{'faster':>9}{'ms prompt':>12}{'faster':>9}{'by the clock':>14}")
    for name, engine in engines.items():
        ratios = [
            statistics.median(b / e for b, e in zip(reference, own, strict=True))
            for reference, own in ((base.token, engine.token), (base.prefill, engine.prefill))
        ]
        token, prompt = (1000 * statistics.median(v) for v in (engine.token, engine.prefill))
        print(f"{name:<20}{token:>12.1f}{ratios[0]:>8.2f}x{prompt:>12.0f}{ratios[1]:>8.2f}x{1000 * min(engine.clock):>14.1f}")


def accuracy(work: Path) -> None:
    """Print what fewer bits change: the likeliest token and the logits, over texts that the exact model wrote."""
    import torch
    import transformers

    from torchferry.runtime.generation import CausalLM
    from torchferry.runtime.quantise import cost

    exact = transformers.GPT2LMHeadModel.from_pretrained(work / "torch").eval()
    starts = torch.tensor(_prompt()).view(4, -1)
    texts = [
        exact.generate(input_ids=ids[None], attention_mask=torch.ones_like(ids[None]), max_new_tokens=24, do_sample=False)
        for ids in starts
    ]
    for name in OURS[2:]:
        print(cost(exact, CausalLM.from_pretrained(work / name), texts, name))


def serve(name: str, work: Path, threads: int) -> None:
    """Answer numbers of tokens on stdin with seconds on stdout."""
    try:
        run = ENGINES[name.split(maxsplit=1)[0]](name, work, threads)
        run(2)  # the first run allocates
    except Exception as error:  # a peer that is missing or too old is left out, whatever it raises
        print(f"> {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
        return
    print("> ready", flush=True)
    for line in sys.stdin:
        began, then = time.process_time(), time.perf_counter()
        run(int(line))
        print(f"> {time.process_time() - began} {time.perf_counter() - then}", flush=True)


def _prompt() -> list[int]:
    return [(7919 * i) % 50000 for i in range(PROMPT)]


def _by_generate(model: Any) -> Any:
    import torch

    ids = torch.tensor([_prompt()])
    model.generation_config.eos_token_id = None  # so that all write as much, and nobody pays for suppressing a token

    def run(new: int) -> None:
        model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, pad_token_id=0)

    return run


def _torch(name: str, work: Path, threads: int) -> Any:
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(work / "torch").eval()
    if name == "torch compiled":
        model.forward = torch.compile(model.forward, dynamic=True)
    return _by_generate(model)


def _torchferry(name: str, work: Path, threads: int) -> Any:
    import torch

    from torchferry.runtime.generation import CausalLM

    torch.set_num_threads(threads)
    return _by_generate(CausalLM.from_pretrained(work / name, threads=threads))


def _optimum(name: str, work: Path, threads: int) -> Any:
    import onnxruntime
    import torch
    from optimum.onnxruntime import ORTModelForCausalLM

    torch.set_num_threads(threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    made = work / "optimum"
    if not made.exists():
        ORTModelForCausalLM.from_pretrained(work / "torch", export=True).save_pretrained(made)
    return _by_generate(ORTModelForCausalLM.from_pretrained(made, session_options=options))


def _mobius(name: str, work: Path, threads: int) -> Any:
    """Run mobius' graph by a loop of our own: it brings no runtime for a GPT-2."""
    import numpy as np
    import onnxruntime

    made = work / "mobius"
    if not made.exists():
        import mobius

        mobius.build(str(work / "torch")).save(str(made))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(next(made.rglob("*.onnx")), options)
    past = [i for i in session.get_inputs() if i.name.startswith("past")]
    names = [o.name for o in session.get_outputs()]
    taken = {i.name for i in session.get_inputs()}

    def run(new: int) -> None:
        held = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)) for i in past]
        ids, length = np.array([_prompt()]), PROMPT
        for _ in range(new):
            places = np.arange(length - ids.shape[1], length)[None]
            feeds = {"input_ids": ids, "attention_mask": np.ones((1, length), np.int64), "position_ids": places}
            binding = session.io_binding()
            for key, value in feeds.items():
                if key in taken:
                    binding.bind_cpu_input(key, value)
            for i, value in zip(past, held, strict=True):
                binding.bind_ortvalue_input(i.name, value)
            for key in names:
                binding.bind_output(key)
            session.run_with_iobinding(binding)
            logits, *held = binding.get_outputs()
            ids, length = logits.numpy()[:, -1].argmax(-1)[:, None], length + 1

    return run


def _ctranslate2(name: str, work: Path, threads: int) -> Any:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    made = work / name
    if not made.exists():
        _give_a_vocabulary(work)
        kind = "int8" if name.endswith("int8") else "float32"
        TransformersConverter(str(work / "for_ctranslate2")).convert(str(made), quantization=kind)
    generator = ctranslate2.Generator(str(made), intra_threads=threads, inter_threads=1)
    words = [f"t{i}" for i in _prompt()]

    def run(new: int) -> None:
        generator.generate_batch([words], max_length=new, min_length=new, sampling_topk=1, include_prompt_in_result=False)

    return run


def _give_a_vocabulary(work: Path) -> None:
    """Put a tokenizer of made-up words beside a copy of the model: the converter asks for one."""
    place = work / "for_ctranslate2"
    if place.exists():
        return
    shutil.copytree(work / "torch", place)
    vocabulary = {f"t{i}": i for i in range(50256)} | {"<|endoftext|>": 50256}
    (place / "vocab.json").write_text(json.dumps(vocabulary))
    (place / "merges.txt").write_text("#version: 0.2\n")
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", "model_max_length": 1024}))


ENGINES = {"torch": _torch, "torchferry": _torchferry, "optimum": _optimum, "mobius": _mobius, "ctranslate2": _ctranslate2}

if __name__ == "__main__":
    main()
