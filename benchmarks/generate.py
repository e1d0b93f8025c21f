"""CPU seconds a token: language models of real size with random weights, on torchferry's export and on its peers, in one run.

    python benchmarks/generate.py --work /tmp/generate [--model gpt2|llama] [--threads 1,2] [--rounds 5]
                                  [--peers PYTHON] [--mobius PYTHON] [--genai PYTHON]

The engines take turns, so that a machine shared with others slows all of them alike; read the ratios, not the times.
Ratios are of CPU time, of all threads together: where other work shares the cores, time on the clock says little. The clock's
columns are the best of all rounds: with two threads on a quiet machine, these are the ones to read.
`--peers` names a Python with optimum-onnx and ctranslate2 (transformers < 4.58), `--mobius` one with mobius-onnx, `--genai` one
with onnxruntime-genai:

    python -m venv peers && peers/bin/pip install 'transformers==4.57.*' torch optimum-onnx onnxruntime ctranslate2

On a processor without VNNI, or without AVX-512: `python benchmarks/hidden.py avx512,vnni -- python benchmarks/generate.py ...`.
An engine that is missing, or that refuses the model (onnxruntime-genai's builder refuses a GPT-2), is named, and the others are
measured. Each lives in a process of its own, which generate_engines.py is.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from generate_engines import NEW, PROMPT, prompt

ENGINES = Path(__file__).with_name("generate_engines.py")
FORMS = {"int8": ("int8", 128), "int8 by 32": ("int8", 32), "int8 by 16": ("int8", 16), "int4": ("int4", 128)}
OURS = ("torch eager", "torch compiled", "torchferry", *(f"torchferry {form}" for form in FORMS))
PEERS = ("optimum", "ctranslate2", "ctranslate2 int8")
MOBIUS = ("mobius",)
GENAI = ("genai",)


def main() -> None:
    """Prepare what is missing, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="a directory for the models; reused when it is there")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--threads", default="1,2", help="how many; several, with commas, one after the other")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", help="a Python with optimum-onnx and ctranslate2")
    parser.add_argument("--mobius", help="a Python with mobius-onnx")
    parser.add_argument("--genai", help="a Python with onnxruntime-genai")
    parser.add_argument("--layers", type=int, default=12)
    asked = parser.parse_args()
    work = asked.work / asked.model
    prepare(work, MODELS[asked.model](asked.layers))
    pythons = {**dict.fromkeys(OURS, sys.executable), **dict.fromkeys(PEERS, asked.peers)}
    pythons |= {**dict.fromkeys(MOBIUS, asked.mobius), **dict.fromkeys(GENAI, asked.genai)}
    for threads in map(int, asked.threads.split(",")):
        engines = {name: Engine(name, python, work, threads) for name, python in pythons.items() if python}
        for name in [name for name, engine in engines.items() if not engine.ready]:
            print(f"{name} is left out: {engines.pop(name).why}", file=sys.stderr)
        for _ in range(asked.rounds):
            for engine in engines.values():
                engine.measure()
        table(engines, asked.model, threads)
        for engine in engines.values():
            engine.end()
    for name in (name for name, python in pythons.items() if not python):
        print(f"{name} is left out: no Python was named that has it (see --help)")
    accuracy(work)


def gpt2(layers: int) -> Any:
    """Return the configuration of the smallest GPT-2."""
    import transformers

    return transformers.GPT2Config(n_layer=layers)


def llama(layers: int) -> Any:
    """Return the configuration of a Llama as wide as that, with three query heads to a key head."""
    import transformers

    return transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=layers,
        num_attention_heads=12,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )


MODELS = {"gpt2": gpt2, "llama": llama}


def prepare(work: Path, config: Any) -> None:
    """Make the model and its exports, unless they are there."""
    import torch
    import transformers

    from torchferry.runtime.quantise import quantise
    from torchferry.tasks import export_directory

    work.mkdir(parents=True, exist_ok=True)
    if not (work / "torch").exists():
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(work / "torch")
    exact = work / "torchferry"
    if not exact.exists():
        began = time.perf_counter()
        export_directory(transformers.AutoModelForCausalLM.from_pretrained(work / "torch").eval(), exact)
        print(f"exported in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    for form, (precision, block) in FORMS.items():
        place = work / f"torchferry {form}"
        if not place.exists():
            shutil.copytree(exact, place, ignore=shutil.ignore_patterns("*.onnx*", "torchferry.json"))
            quantise(exact / "model.onnx", place / "model.onnx", precision, block=block)


class Engine:
    """A process that generates when asked to, and says how long it took."""

    def __init__(self, name: str, python: str, work: Path, threads: int) -> None:
        command = [python, str(ENGINES), name, str(work), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.prefill: list[float] = []  # CPU seconds
        self.token: list[float] = []
        self.prefill_clock: list[float] = []
        self.token_clock: list[float] = []
        self.why = self._read()
        self.ready = self.why == "ready"

    def measure(self) -> None:
        """Time one prompt with a single new token, then with many: the difference is what the others took."""
        (first, begun), (many, ended) = self._ask(1), self._ask(1 + NEW)
        self.prefill.append(first)
        self.token.append((many - first) / NEW)
        self.prefill_clock.append(begun)
        self.token_clock.append((ended - begun) / NEW)

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


def table(engines: dict[str, Engine], model: str, threads: int) -> None:
    """Print milliseconds and ratios to the first engine; a ratio is the median of those of each round."""
    base = next(iter(engines.values()))
    rounds = len(base.token)
    print(f"{model}, prompt of {PROMPT}, {NEW} new tokens, {threads} thread{'s' if threads > 1 else ''}, {rounds} rounds")
    print(f"{'engine':<20}{'ms a token':>12}{'faster':>9}{'by the clock':>14}{'ms prompt':>12}{'faster':>9}{'by the clock':>14}")
    for name, engine in engines.items():
        cells = ""
        for reference, own, clock in (
            (base.token, engine.token, engine.token_clock),
            (base.prefill, engine.prefill, engine.prefill_clock),
        ):
            ratio = statistics.median(b / e for b, e in zip(reference, own, strict=True))
            cells += f"{1000 * statistics.median(own):>12.1f}{ratio:>8.2f}x{1000 * min(clock):>14.1f}"
        print(f"{name:<20}{cells}")


def accuracy(work: Path) -> None:
    """Print what fewer bits change: the likeliest token and the logits, over texts that the exact model wrote."""
    import torch
    import transformers

    from torchferry.runtime.generation import CausalLM
    from torchferry.runtime.quantise import cost

    exact = transformers.AutoModelForCausalLM.from_pretrained(work / "torch").eval()
    starts = torch.tensor(prompt()).view(4, -1)
    texts = [
        exact.generate(input_ids=ids[None], attention_mask=torch.ones_like(ids[None]), max_new_tokens=24, do_sample=False)
        for ids in starts
    ]
    for name in OURS[2:]:
        print(cost(exact, CausalLM.from_pretrained(work / name), texts, name))


if __name__ == "__main__":
    main()
