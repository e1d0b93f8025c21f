"""Programs, directories, metadata and certificates broken at random, or made to do harm: what torchferry reads beside graphs.

Each must end in an answer or a refusal of torchferry's own. While one is read, Python's own audit tells of whatever is
unpickled, started, loaded or opened for writing, and afterwards everything around the file must be as it was.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx

import torchferry
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, SESSION_KEY
from torchferry.deadline import TookTooLong, time_limit
from torchferry.errors import TorchferryError
from torchferry.files import PREFIX

SLOWEST = 30.0  # seconds for one document; more is a hang
CANARY = "canary"  # a file that hostile values try to write, or a library that they try to load
CODE = f"__import__('pathlib').Path('{CANARY}').write_text('harm')"
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 1.5, 1e308, float("nan"), float("inf"), "", "x", "\0", "\u202e", "²",
    "a" * 5000, "../../x", "/etc/passwd", CANARY, CODE, f"{{{{ {CODE} }}}}", "evil/kernel", "cos\nsystem\n(S'touch canary'\ntR.",
    [], [1], [[]], ["x"] * 300, {}, {"x": 1}, {"__class__": "os.system"}, {"libraries": [CANARY]},
    {"auto_map": {"AutoModel": "x.y"}},
)  # fmt: skip
KEYS = (
    "libraries", "optimised_to", "config", "data_folder", "settings", "disabled", "level", "longest", "auto_map", "__init__", "",
    "session.collect_node_memory_stats_to_file", "attn_implementation", "quantization_config", "architectures", "model_type",
    "chat_template", "num_beams", "max_length", "max_new_tokens", "custom_generate", "assistant_model", "compile_config",
)  # fmt: skip
HARMFUL = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "ctypes.dlopen", "socket.connect")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document: `spoil` puts a broken one into an empty folder, `use` reads it and says what came of it."""

    name: str
    spoil: Callable[[Path, random.Random], None]
    use: Callable[[Path], str]


# --- how they are broken -----------------------------------------------------------------------------


def spoilt_json(text: str, chance: random.Random) -> str:
    """Return a JSON text with one to three entries changed, added or taken away; or broken as a text."""
    if chance.random() < 0.15:
        at = chance.randrange(len(text) + 1)
        return (
            text[:at]
            + chance.choice(("", "{", "]", '"', "\\u", "[" * 50_000, "NaN", "1" * 5000))
            + text[at + chance.randrange(3) :]
        )
    held = json.loads(text)
    for _ in range(chance.randint(1, 3)):
        held = _changed(held, chance)
    return json.dumps(held)


def _changed(held: Any, chance: random.Random) -> Any:
    """Return a value with something in it changed, at a random depth."""
    inner = list(held) if isinstance(held, dict) else list(range(len(held))) if isinstance(held, list) else []
    if not inner or chance.random() < 0.1:
        return chance.choice(VALUES)
    key = chance.choice(inner)
    match chance.randrange(4):
        case 0 if isinstance(held, dict):
            return {**held, chance.choice((*KEYS, *held)): chance.choice(VALUES)}
        case 1:
            return {k: v for k, v in held.items() if k != key} if isinstance(held, dict) else held[:-1]
        case _:
            held = dict(held) if isinstance(held, dict) else list(held)
            held[key] = _changed(held[key], chance) if chance.random() < 0.6 else chance.choice(VALUES)
            return held


def spoilt_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with some changed, or cut off."""
    at = chance.randrange(len(data) + 1)
    return data[:at] if chance.random() < 0.2 else data[:at] + chance.randbytes(chance.choice((1, 4, 16))) + data[at + 4 :]


# --- programs ----------------------------------------------------------------------------------------


class _Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (Path(CANARY), "harm")


@cache
def programs() -> Kind:
    """Return `.pt2` files: pickles, sizes and configurations in them replaced. They are never trusted here."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pt2"
        moving = ({0: torch.export.Dim("n", min=2, max=64)},)
        torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=moving), path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}

    def spoil(place: Path, chance: random.Random) -> None:
        held = dict(members)
        for name in chance.sample(list(held), chance.randint(1, 3)):
            text = name.endswith(".json")
            held[name] = spoilt_json(held[name].decode(), chance).encode() if text else spoilt_bytes(held[name], chance)
            if name.endswith(".pt") and chance.random() < 0.7:
                held[name] = pickle.dumps(_Harm())
            if name.endswith("model.json"):
                held[name] = held[name].replace(b"Symbol('s31', positive=True, integer=True)", CODE.encode())
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name, data in held.items():
                archive.writestr(name, data)
        data = made.getvalue() if chance.random() < 0.7 else spoilt_bytes(made.getvalue(), chance)
        (place / "program.pt2").write_bytes(data)
        (place / "model.onnx").write_bytes(data)

    def use(place: Path) -> str:
        refused = torchferry.export(place / "program.pt2", (torch.ones(4, 3),), check=False)
        looked = torchferry.check(place / "model.onnx", repair="off")
        told = [d.code for d in refused.diagnoses]
        return "refused" if told == ["INP017"] and looked.diagnoses else f"unexplained {told} {looked.diagnoses}"

    return Kind("programs", spoil, use)


# --- metadata and certificates -----------------------------------------------------------------------


@cache
def files() -> tuple[Kind, Kind]:
    """Return files whose metadata for sessions, and files whose certificates are broken."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torchferry.export(torch.nn.Linear(3, 2).eval(), (torch.ones(4, 3),), path)
        model = onnx.load(str(path))
    certificate = next(p.value for p in model.metadata_props if p.key == CERTIFICATE_KEY)

    def spoil(key: str, whole: str) -> Callable[[Path, random.Random], None]:
        def spoilt(place: Path, chance: random.Random) -> None:
            made = onnx.ModelProto()
            made.CopyFrom(model)
            kept = [(p.key, p.value) for p in made.metadata_props if p.key != key]
            del made.metadata_props[:]
            for name, value in [*kept, (key, spoilt_json(whole, chance))]:
                made.metadata_props.add(key=name, value=value.encode("utf-8", "replace").decode())
            (place / "model.onnx").write_bytes(made.SerializeToString())

        return spoilt

    def session(place: Path) -> str:
        import numpy as np

        opened = torchferry.InferenceSession(place / "model.onnx")
        opened.run(None, {opened.get_inputs()[0].name: np.ones((2, 3), np.float32)})
        return "opens"

    def certified(place: Path) -> str:
        from torchferry.cli.certificate import show

        for form in ("text", "json"):
            with contextlib.redirect_stdout(io.StringIO()):
                code = show(place / "model.onnx", form)
        return "opens" if code == 0 else "refused"

    settings = '{"disabled_optimizers": ["ConvActivationFusion", "MatMulAddFusion"]}'
    return Kind("metadata", spoil(SESSION_KEY, settings), session), Kind(
        "certificates", spoil(CERTIFICATE_KEY, certificate), certified
    )


# --- directories -------------------------------------------------------------------------------------

DOCUMENTS = (
    "torchferry.json",
    "torchferry.json",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
)


def directories() -> Kind:
    """Return directories that generate, with one of the documents beside the graph broken."""
    import transformers

    from torchferry.demo_dialogue import tokenizer
    from torchferry.tasks import export_directory

    words = tokenizer()
    small = {"n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(words), **small)).eval()
    kept = tempfile.TemporaryDirectory()
    export_directory(model, Path(kept.name) / "out", tokenizer=words)
    return of_directory(Path(kept.name) / "out", kept)


def of_directory(whole: Path, kept: Any = None) -> Kind:
    """Return copies of a directory, with one of the documents beside the graph broken; `kept` lives as long as the kind."""

    def spoil(place: Path, chance: random.Random, kept: Any = kept) -> None:
        for file in whole.iterdir():
            shutil.copy(file, place / file.name)
        name = chance.choice([name for name in DOCUMENTS if (place / name).is_file()])
        text = spoilt_json((place / name).read_text(encoding="utf-8"), chance)
        (place / name).write_text(text, encoding="utf-8", errors="replace")

    def use(place: Path) -> str:
        from torchferry.cli import generate

        with contextlib.redirect_stdout(io.StringIO()):
            generate.run(place, "hello", max_new_tokens=2, threads=1)
        return "opens"

    return Kind("directories", spoil, use)


# --- what comes of them ------------------------------------------------------------------------------


class Watch:
    """Python's own audit, for as long as it is asked to listen: what was run, or opened for writing but in a workspace."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        self.free = (str(Path(tempfile.gettempdir()) / PREFIX), os.devnull)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        if event.startswith(HARMFUL) and not (event == "ctypes.dlopen" and arguments[0] != CANARY):
            self.seen.append(f"{event} {arguments!r}"[:300])
        path, mode, *_ = *map(str, arguments), "", ""
        if event == "open" and set(mode) & set("wax+") and mode != "None" and not path.startswith(self.free):
            self.seen.append(f"{event} {arguments!r}"[:300])

    @contextlib.contextmanager
    def listening(self) -> Iterator[list[str]]:
        """Listen while the block runs; the list fills with what must not be."""
        self.seen = heard = []
        try:
            yield heard
        finally:
            self.seen = None


@cache
def audit() -> Watch:
    """Return the one watch of this process: an audit cannot be ended."""
    return Watch()


def tried(kind: Kind, place: Path, chance: random.Random, watch: Watch) -> tuple[str, str]:
    """Return what came of one document, and details of what must not have."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "inside").mkdir(parents=True)
    (place / CANARY).write_text("mine", encoding="utf-8")
    kind.spoil(place / "inside", chance)
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    began = time.perf_counter()
    with contextlib.chdir(place), watch.listening() as heard:
        try:
            with time_limit(SLOWEST, kind.name):
                came, detail = kind.use(place / "inside"), ""
        except TorchferryError as error:
            came, detail = "refused", str(error)
        except (Exception, TookTooLong) as error:  # whatever it is, it is what this script looks for
            came, detail = "our crash", f"{type(error).__name__}: {error}"[:500]
    if heard:
        return "ran or wrote", str(heard[:3])
    if {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} != before:
        return "wrote outside", str(sorted(p.name for p in place.rglob("*")))
    return ("hung", f"{time.perf_counter() - began:.0f} s") if time.perf_counter() - began > SLOWEST else (came, detail)


def fuzz(kind: Kind, count: int, seed: int, folder: Path) -> tuple[Counter[str], list[tuple[str, str]]]:
    """Return how many documents came to what, and those that must not have, by the seed that makes them again."""
    tally, wrong, watch = Counter[str](), [], audit()
    for number in range(count):
        came, detail = tried(kind, folder / kind.name, random.Random(f"{kind.name} {seed} {number}"), watch)
        tally[came.split()[0] if came.startswith("unexplained") else came] += 1
        if came not in ("opens", "refused"):
            wrong.append((f"{kind.name} {seed} {number}", f"{came}: {detail}"))
    return tally, wrong
