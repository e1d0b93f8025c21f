"""The oldest releases that the metadata allows, but for torch's: fetched into a folder that stands before all others.

Torch is not fetched: a release of it takes minutes and some GB, and `benchmarks/versions.py` tries those.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from torchferry.releases.tested import OLDEST

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # which pytest brings there

ROOT = Path(__file__).parent.parent
ROOM = ROOT / "build" / "floors"
TRIED = ("onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "tokenizers")
# what the oldest transformers needs and the newest does not
BESIDE = ("huggingface_hub<1", "requests", "urllib3", "charset_normalizer", "certifi")
USED = """
import json, sys
from importlib.metadata import version
from pathlib import Path
import torch, onnxruntime, transformers, torchferry
from torchferry.demo import mlp
print(json.dumps({name: version(name) for name in sys.argv[2:]}))
place = Path(sys.argv[1])

def pooled(x):
    return x.mean(1) if x.shape[1] > 10 else x.amax(1)

class Pooler(torch.nn.Module):
    def forward(self, x):
        return pooled(x)

quick = {"budget": torchferry.Budget(trials=8, mutants=0), "progress": False}
assert torchferry.export(Pooler(), (torch.randn(2, 5, 4),), place / "pooler.onnx", **quick).ok
model, args = mlp()
assert torchferry.export(model, args, place / "mlp.onnx", **quick).ok
assert torchferry.check(place / "mlp.onnx").ok
got = torchferry.InferenceSession(place / "mlp.onnx").run(None, {"x": args[0]})[0]
assert abs(got - model(*args).detach().numpy()).max() < 1e-5

torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=31, n_positions=24, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1)
model = transformers.GPT2LMHeadModel(config).eval()
assert torchferry.export(model, f=str(place / "gpt"), task="text-generation", **quick).ok
from torchferry.generation import CausalLM
ids = torch.tensor([[5, 6, 7]])
written = CausalLM.from_pretrained(place / "gpt").generate(ids, max_new_tokens=5, do_sample=False)
assert torch.equal(written, model.generate(ids, max_new_tokens=5, do_sample=False))
print("all of it")
"""


def floors() -> dict[str, str]:
    """Return the oldest release of each package that the metadata allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [*project["dependencies"], *(need for extra in project["optional-dependencies"].values() for need in extra)]
    told = [match for need in needs if (match := re.match(r"([\w-]+)>=([\w.]+)", need))]
    return {match[1]: match[2] for match in told if match[1] in TRIED}


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder with the oldest releases."""
    wanted = [f"{name}=={oldest}" for name, oldest in sorted(floors().items())] + list(BESIDE)
    said = ROOM / "wanted.json"
    if not said.exists() or json.loads(said.read_text(encoding="utf-8")) != wanted:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--upgrade"]
        made = subprocess.run([*pip, "--target", str(ROOM), *wanted], capture_output=True, text=True, check=False)
        if "from versions: none" in made.stderr:
            pytest.skip("no package index is in reach")
        assert made.returncode == 0, made.stderr
        said.write_text(json.dumps(wanted), encoding="utf-8")
    return ROOM


def test_every_package_has_an_oldest_release() -> None:
    assert sorted(floors()) == sorted(TRIED)


def test_doctor_and_the_metadata_agree_on_the_oldest_torch() -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]["export"]
    assert f"torch>={OLDEST[0]}.{OLDEST[1]}" in needs


@pytest.mark.xdist_group("floors")
def test_models_are_converted_run_and_generate_with_the_oldest_releases(folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT / "src")))}
    script = tmp_path / "used.py"  # a function's source is looked for
    script.write_text(USED, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path), *TRIED],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout.splitlines()[0])
    assert {name: Version(found) for name, found in told.items()} == {name: Version(oldest) for name, oldest in floors().items()}
    assert ended.stdout.splitlines()[-1] == "all of it"
