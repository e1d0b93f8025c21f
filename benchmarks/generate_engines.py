"""Engines that generate.py measures, each served in a process of its own: `python generate_engines.py NAME WORK THREADS`.

A line with a number of tokens on stdin is answered by the CPU seconds and the seconds that writing them took.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROMPT, NEW = 32, 64


def main() -> None:
    """Answer numbers of tokens on stdin with seconds on stdout."""
    name, work, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
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


def prompt() -> list[int]:
    """Return the token ids that every engine continues."""
    return [(7919 * i) % 30000 for i in range(PROMPT)]


def _by_generate(model: Any) -> Any:
    import torch

    ids = torch.tensor([prompt()])
    model.generation_config.eos_token_id = None  # so that all write as much, and nobody pays for suppressing a token

    def run(new: int) -> None:
        model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, pad_token_id=0)

    return run


def _torch(name: str, work: Path, threads: int) -> Any:
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(work / "torch").eval()
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
    """Run mobius' graph by a loop of our own: it brings no runtime."""
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
        ids, length = np.array([prompt()]), PROMPT
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
        kind = "int8" if name.endswith("int8") else "float32"
        TransformersConverter(str(_with_a_vocabulary(work))).convert(str(made), quantization=kind)
    generator = ctranslate2.Generator(str(made), intra_threads=threads, inter_threads=1)
    words = [f"t{i}" for i in prompt()]

    def run(new: int) -> None:
        generator.generate_batch([words], max_length=new, min_length=new, sampling_topk=1, include_prompt_in_result=False)

    return run


def _genai(name: str, work: Path, threads: int) -> Any:
    import numpy as np
    import onnxruntime_genai

    made = work / "genai"
    if not made.exists():
        options = ["-i", str(_with_a_vocabulary(work)), "-o", str(made), "-p", "fp32", "-e", "cpu", "-c", str(work)]
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(made, ignore_errors=True)
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
    config = onnxruntime_genai.Config(str(made))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
    model = onnxruntime_genai.Model(config)

    def run(new: int) -> None:
        asked = onnxruntime_genai.GeneratorParams(model)
        asked.set_search_options(max_length=PROMPT + new, min_length=PROMPT + new, do_sample=False)
        generator = onnxruntime_genai.Generator(model, asked)
        generator.append_tokens(np.array([prompt()], np.int32))
        while not generator.is_done():
            generator.generate_next_token()

    return run


def _with_a_vocabulary(work: Path) -> Path:
    """Return a copy of the model with a tokenizer of made-up words beside it: some converters ask for one."""
    place = work / "with_vocabulary"
    if place.exists():
        return place
    shutil.copytree(work / "torch", place)
    size = json.loads((place / "config.json").read_text())["vocab_size"]
    words = {"type": "WordLevel", "vocab": {f"t{i}": i for i in range(size)}, "unk_token": "t0"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    (place / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], **parts, "model": words}))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "t0", "bos_token": "t1", "eos_token": "t2"}
    (place / "tokenizer_config.json").write_text(json.dumps(named))
    return place


ENGINES = {
    "torch": _torch,
    "torchferry": _torchferry,
    "optimum": _optimum,
    "mobius": _mobius,
    "ctranslate2": _ctranslate2,
    "genai": _genai,
}

if __name__ == "__main__":
    main()
