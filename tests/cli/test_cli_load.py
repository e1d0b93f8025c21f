"""From the name of a model to the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from torchferry.cli.load import LoadFailed, load
from torchferry.cli.words import ExampleInput
from torchferry.errors import UsageError


def test_a_function_in_a_file_gives_model_and_arguments(here: Path) -> None:
    loaded = load("models.py:fine")
    assert type(loaded.model).__name__ == "Fine"
    assert loaded.args[0].shape == (2, 3)


def test_a_function_may_give_keyword_arguments(here: Path) -> None:
    assert load("models.py:with_kwargs").kwargs["x"].shape == (2, 3)


@pytest.mark.parametrize("name", ["models.py:alone", "models.py:instance", "models.py:Fine", "models:Fine"])
def test_a_model_alone_an_instance_and_a_class_are_models(name: str, here: Path) -> None:
    assert type(load(name, [ExampleInput("x", (2, 3), "float32")]).model).__name__ == "Fine"


def test_a_model_without_the_example_it_needs_is_refused_with_the_option_to_add(here: Path) -> None:
    with pytest.raises(UsageError, match="--input x:SHAPE:DTYPE"):
        load("models.py:alone")


def test_a_saved_program_brings_its_example(here: Path) -> None:
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(2, 3),))
    torch.export.save(program, here / "program.pt2")
    loaded = load("program.pt2", trust=True)
    assert isinstance(loaded.model, torch.export.ExportedProgram)
    assert loaded.args[0].shape == (2, 3)


def test_a_damaged_program_is_refused_in_a_sentence(here: Path) -> None:
    (here / "program.pt2").write_bytes(b"not a program")
    with pytest.raises(UsageError, match=r"cannot be read as a torch\.export program"):
        load("program.pt2", trust=True)


def test_what_the_users_code_raises_is_placed_at_the_users_line(here: Path) -> None:
    with pytest.raises(LoadFailed) as failed:
        load("models.py:raises")
    (found,) = failed.value.result("export", 0.1).diagnoses
    assert (found.code, found.title) == ("INP016", "`models.py:raises` raised while the model was being made")
    assert "no weights here" in found.message
    assert found.location.file is not None
    assert "raise RuntimeError" in Path(found.location.file).read_text().splitlines()[(found.location.line or 0) - 1]


def test_a_syntax_error_is_placed_at_its_line(here: Path) -> None:
    (here / "broken.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(LoadFailed) as failed:
        load("broken.py:f")
    assert failed.value.result("export", 0.1).diagnoses[0].location.line == 2


def test_a_missing_import_inside_the_users_module_is_not_called_a_missing_module(here: Path) -> None:
    (here / "importer.py").write_text("import surely_not_installed\n")
    with pytest.raises(LoadFailed, match="surely_not_installed"):
        load("importer:f")


def test_inputs_are_made_by_keyword_where_the_names_are_parameters(here: Path) -> None:
    loaded = load("models.py:alone", [ExampleInput("x", (4, 3), "float32")])
    assert loaded.args == ()
    assert loaded.kwargs["x"].shape == (4, 3)


def test_inputs_with_other_names_are_given_by_position_and_name_the_graph(here: Path) -> None:
    loaded = load("models.py:fine", [ExampleInput("features", (4, 3), "float32")])
    assert loaded.args[0].shape == (4, 3)
    assert loaded.input_names == ("features",)


def test_made_ids_stay_inside_the_smallest_table(here: Path) -> None:
    (here / "table.py").write_text("from torch import nn\ndef model(): return nn.Sequential(nn.Embedding(5, 2))\n")
    loaded = load("table.py:model", [ExampleInput("input", (200,), "int64")])
    assert loaded.kwargs["input"].max() == 4


def _tiny_gpt2(folder: Path, **options: object) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1)
    GPT2LMHeadModel(config).save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**saved, **options}))


def test_a_local_transformers_directory_is_loaded_with_an_example(here: Path) -> None:
    _tiny_gpt2(here / "gpt2")
    loaded = load("hf:gpt2")
    assert type(loaded.model).__name__ == "GPT2LMHeadModel"
    assert not loaded.model.training
    assert loaded.kwargs["input_ids"].max() < 50
    assert loaded.kwargs["attention_mask"].all()


def test_remote_code_runs_only_when_trusted(here: Path) -> None:
    _tiny_gpt2(here / "gpt2", auto_map={"AutoModel": "code.Model"})
    (here / "gpt2" / "code.py").write_text("raise SystemExit('remote code ran')\n")
    with pytest.raises(UsageError, match="--trust"):
        load("hf:gpt2")


def test_pickled_weights_are_refused(here: Path) -> None:
    _tiny_gpt2(here / "gpt2")
    (here / "gpt2" / "model.safetensors").rename(here / "gpt2" / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"pickle[^$]*from transformers import GPT2LMHeadModel; .*save_pretrained"):
        load("hf:gpt2")


def test_weights_of_sixteen_bits_are_computed_in_float32_and_that_is_said(here: Path) -> None:
    from transformers import GPT2LMHeadModel

    _tiny_gpt2(here / "gpt2")
    assert load("hf:gpt2").words == ""
    GPT2LMHeadModel.from_pretrained(here / "gpt2", dtype=torch.bfloat16).save_pretrained(here / "gpt2")
    loaded = load("hf:gpt2")
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert loaded.words == "bfloat16 weights, computed in float32"


def test_weights_that_the_checkpoint_lacks_are_not_drawn_at_random(here: Path) -> None:
    _tiny_gpt2(here / "gpt2", n_layer=2)
    with pytest.raises(UsageError, match=r"no weights for 12 of the tensors of GPT2LMHeadModel.*`transformer\.h\.1\."):
        load("hf:gpt2")


def test_damaged_weights_are_a_failure_to_load_and_not_ours(here: Path) -> None:
    _tiny_gpt2(here / "gpt2")
    whole = (here / "gpt2" / "model.safetensors").read_bytes()
    (here / "gpt2" / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LoadFailed, match="`hf:gpt2` could not be loaded: SafetensorError"):
        load("hf:gpt2")


def test_a_config_that_is_no_json_is_refused(here: Path) -> None:
    (here / "gpt2").mkdir()
    (here / "gpt2" / "config.json").write_text("{not json")
    with pytest.raises(UsageError, match=r"config\.json` is refused: it is not the JSON that it should be"):
        load("hf:gpt2")


def test_a_pickle_is_never_opened(here: Path, inside: Callable[..., int]) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (open, ("opened", "w"))

    torch.save({"w": Bomb()}, here / "weights.pt")
    assert inside("export", "weights.pt") == 2
    assert not (here / "opened").exists()


def test_what_a_factory_draws_is_the_same_each_time_and_that_is_said(here: Path) -> None:
    first, again = (
        load("models.py:alone", [ExampleInput("x", (2, 3), "float32")]),
        load("models.py:alone", [ExampleInput("x", (2, 3), "float32")]),
    )
    assert torch.equal(first.model.linear.weight, again.model.linear.weight)
    assert "what it draws at random starts from seed" in first.words
    assert load("models.py:fine").words == ""  # it has a seed of its own


@pytest.mark.parametrize(
    ("name", "evaluate", "training"),
    [("Fine", None, False), ("Fine", False, True), ("alone", None, True), ("alone", True, False), ("instance", True, False)],
)
def test_a_class_is_put_in_eval_mode_and_anything_else_where_asked(
    name: str, evaluate: bool | None, training: bool, here: Path
) -> None:
    loaded = load(f"models.py:{name}", [ExampleInput("x", (2, 3), "float32")], evaluate=evaluate)
    assert loaded.model.training is training
    assert ("put in eval mode" in loaded.words) is not training
