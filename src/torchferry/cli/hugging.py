"""transformers models in a local directory: config.json and safetensors. Nothing is downloaded, no pickle is opened."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from torchferry.cli.examples import make
from torchferry.cli.words import ExampleInput
from torchferry.errors import UsageError
from torchferry.extras import require
from torchferry.runtime import configs

BATCH, LENGTH = 2, 8  # of the example; both are found to move, or not, by trying


def load(name: str, *, trust_remote_code: bool) -> tuple[Any, dict[str, Any], Path | None, str]:
    """Return a model in eval mode, an example call by keyword, where its tokenizer is, if it has one, and what is to be said.

    Weights of 16 bits are computed in float32: that loses nothing, and a CPU has no faster way for them.
    """
    folder = _folder(name)
    config = configs.read(folder / "config.json")
    if config.get("auto_map") and not trust_remote_code:
        raise UsageError(f"`{name}` brings Python code of its own; read it, then allow it to run with --trust")
    if not any(folder.glob("*.safetensors")):
        raise UsageError(_no_safetensors(name, folder, config))
    require("a model from `hf:`", "torch", "transformers", "safetensors")
    import torch
    import transformers

    from torchferry.runtime import tokens

    transformers.utils.logging.disable_progress_bar()
    kind = _class(transformers, name, config)
    model, loaded = kind.from_pretrained(
        folder,
        dtype=torch.float32,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=trust_remote_code,
        output_loading_info=True,
    )
    if missing := sorted(loaded["missing_keys"]):
        raise UsageError(_random_weights(name, model, missing))
    model.eval()
    kept = config.get("dtype") or config.get("torch_dtype")
    said = f"{kept} weights, computed in float32" if kept in ("float16", "bfloat16") else ""
    return model, example(model), folder if tokens.present(folder) else None, said


def example(model: Any) -> dict[str, Any]:
    """Return an example call for a model, from what its config says that it takes."""
    config, main = model.config, getattr(model, "main_input_name", "input_ids")
    if main == "pixel_values":
        inputs = [_images(config)]
    elif main == "input_values":
        inputs = [ExampleInput(main, (BATCH, 16000), "float32")]
    elif main == "input_features":
        frames = 2 * getattr(config, "max_source_positions", 1500)
        inputs = [ExampleInput(main, (BATCH, getattr(config, "num_mel_bins", 80), frames), "float32")]
    else:
        inputs = [ExampleInput(main, (BATCH, LENGTH), "int64"), ExampleInput("attention_mask", (BATCH, LENGTH), "int64")]
        if hasattr(config, "vision_config") and "pixel_values" in inspect.signature(model.forward).parameters:
            inputs.append(_images(config))
    if getattr(config, "is_encoder_decoder", False):
        inputs.append(ExampleInput("decoder_input_ids", (BATCH, LENGTH), "int64"))
    return make(model, inputs)


def _images(config: Any) -> ExampleInput:
    """Return pictures of the size that a config speaks of."""
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", 224)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return ExampleInput("pixel_values", (BATCH, getattr(vision, "num_channels", 3), height, width), "float32")


def _folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file():
        return folder
    if folder.is_dir():
        raise UsageError(f"`{name}` has no config.json, so it is not a transformers model")
    if cached := _cached(name):
        return cached
    raise UsageError(
        f"there is no directory `{name}`, and torchferry downloads nothing; if it is a model's name on the hub, fetch it first:\n"
        f"    hf download {name} --local-dir {Path(name).name}\n"
        f"then: torchferry export hf:{Path(name).name}"
    )


def _cached(name: str) -> Path | None:
    """Return where an earlier download of a model lies, or None."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:  # not the form of a name on the hub
        return None
    return Path(found).parent if isinstance(found, str) else None


def _class(transformers: Any, name: str, config: dict[str, Any]) -> Any:
    """Return the class that the config names: one of transformers, or the general one that finds the directory's own code."""
    named = config.get("architectures") or ()
    for one in named:
        found = getattr(transformers, one, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    own = {
        auto: str(code).rpartition(".")[2] for auto, code in config.get("auto_map", {}).items() if auto.startswith("AutoModel")
    }
    if fitting := [auto for auto, one in own.items() if one in named] or list(own):
        return getattr(transformers, fitting[0])
    if named:
        raise UsageError(
            f"`{name}` names the class `{named[0]}`, which transformers does not have, and brings no code for it;\n"
            f"load it where that class is, and export from there: torchferry.export(model, f='OUT/', task=...)"
        )
    return transformers.AutoModel


def _random_weights(name: str, model: Any, missing: list[str]) -> str:
    some = ", ".join(f"`{key}`" for key in missing[:3]) + (", ..." if len(missing) > 3 else "")
    return (
        f"`{name}` has no weights for {len(missing)} of the tensors of {type(model).__name__}, and random numbers would stand in "
        f"their place: {some};\nif that is meant, load it in Python and export from there: torchferry.export(model, ...)"
    )


def _no_safetensors(name: str, folder: Path, config: dict[str, Any]) -> str:
    if any(folder.glob("*.bin")):
        kind = (config.get("architectures") or ["AutoModel"])[0]  # AutoModel would leave the head out
        return (
            f"`{name}` keeps its weights in a pickle (.bin), and opening a pickle runs whatever code is in it;\n"
            f"where you trust the file, write it as safetensors first:\n"
            f'    python -c "from transformers import {kind}; '
            f'{kind}.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"'
        )
    return f"`{name}` has no .safetensors weights"
