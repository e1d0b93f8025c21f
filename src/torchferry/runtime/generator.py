"""What a model in an ONNX file needs so that transformers' own `generate` works on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from transformers import AutoConfig, GenerationConfig, GenerationMixin, PreTrainedConfig

from torchferry import ort
from torchferry.errors import FeedError, UsageError

RECORD = "torchferry.json"  # what the export knew and the graph cannot say: task, longest text, session settings


class OnnxGenerator(GenerationMixin):
    """A directory with a config and ONNX graphs, in the shape that GenerationMixin and transformers.pipeline expect."""

    main_input_name = "input_ids"
    base_model_prefix = "model"
    graphs: tuple[str, ...] = ()  # the files that the directory must have
    _is_stateful = False
    _supports_cache_class = True

    def __init__(
        self,
        sessions: Mapping[str, Any],
        config: PreTrainedConfig,
        generation_config: GenerationConfig | None = None,
        longest: int | None = None,
    ) -> None:
        self.sessions = dict(sessions)
        self.config = config
        self.generation_config = generation_config or GenerationConfig.from_model_config(config)
        self.longest = longest
        self.device = torch.device("cpu")
        self.name_or_path = ""
        self.training = False

    @classmethod
    def from_pretrained(cls, directory: str | Path, *, threads: int = 0) -> Self:
        """Return the model in a directory that `torchferry export hf:... -o DIRECTORY` (or optimum) wrote.

        threads: how many onnxruntime may use for one operator; 0 leaves it to onnxruntime.
        """
        place = Path(directory)
        missing = [name for name in (*cls.graphs, "config.json") if not (place / name).is_file()]
        if missing:
            raise UsageError(
                f"`{place}` has no {' and no '.join(f'`{m}`' for m in missing)}; "
                f"make it with `torchferry export hf:MODEL -o {place}`"
            )
        record = _record(place)
        settings = {"threads": threads, **record.get("settings", {})}
        sessions = {name: ort.session(place / name, **settings) for name in cls.graphs}
        told = GenerationConfig.from_pretrained(place) if (place / "generation_config.json").is_file() else None
        config = AutoConfig.from_pretrained(place)
        made = _named_after(config, cls)(sessions, config, told, record.get("longest"))
        made.name_or_path = str(place)
        return made

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the model computes in."""
        return getattr(self.config, "dtype", None) or torch.float32

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of one step; each task says how."""
        raise NotImplementedError

    def refuse_too_long(self, length: int) -> None:
        """Raise FeedError where a text is longer than the model has positions for."""
        if self.longest is not None and length > self.longest:
            raise FeedError(
                f"the text is {length} tokens long and the model has positions for {self.longest}; "
                f"shorten the prompt (truncation=True, max_length=...) or ask for fewer new tokens"
            )

    def refuse_unknown(self, more: Mapping[str, Any]) -> None:
        """Raise FeedError for an argument that the graph has no input or output for; to ignore it would change the answer."""
        for name, value in more.items():
            if value is None or value is False:
                continue
            if name == "token_type_ids":
                raise FeedError("the graph takes no `token_type_ids`; call the tokenizer with return_token_type_ids=False")
            raise FeedError(f"the graph was exported without `{name}`; leave it out")

    def can_generate(self) -> bool:
        """Whether `generate` works: yes."""
        return True

    def to(self, device: Any = None, *_: Any, **__: Any) -> Self:
        """Return this model; it can only be on the CPU."""
        if isinstance(device, str | torch.device) and torch.device(device).type != "cpu":
            raise UsageError(f"this model runs on the CPU, not on {device}")
        return self

    def eval(self) -> Self:
        """Return this model, which has no other mode."""
        return self

    def is_remote_code(self) -> bool:
        """Whether the model's class came with its weights: no, it is this one."""
        return False

    def get_experts_implementation(self) -> dict[str, str]:
        """Return how experts are dispatched; in a graph that was decided long ago."""
        return {}


def _named_after(config: PreTrainedConfig, kind: type[OnnxGenerator]) -> Any:
    """Return the class under the name of the model's own: transformers' pipelines tell by it what a model can do."""
    return type((config.architectures or [kind.__name__])[0], (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _record(place: Path) -> dict[str, Any]:
    path = place / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
