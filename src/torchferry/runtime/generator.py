"""What a model in an ONNX file needs so that transformers' own `generate` works on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig, GenerationConfig, PretrainedConfig

from torchferry import intake
from torchferry.errors import FeedError, UsageError
from torchferry.foreign.transformers_generation import Generating, as_loaded
from torchferry.runtime import configs, directories

if TYPE_CHECKING:
    from typing_extensions import Self


class OnnxGenerator(Generating):
    """A directory with a config and ONNX graphs, in the shape that GenerationMixin and transformers.pipeline expect."""

    main_input_name = "input_ids"
    base_model_prefix = "model"
    graphs: tuple[str, ...] = ()  # the files that the directory must have
    families: Mapping[str, str] = {}  # transformers' own class for each model type

    def __init__(
        self,
        sessions: Mapping[str, Any],
        config: PretrainedConfig,
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
    def from_pretrained(
        cls, directory: str | Path, *, threads: int = 0, arrange: bool = True, libraries: Sequence[str] = ()
    ) -> Self:
        """Return the model in a directory that `torchferry export hf:... -o DIRECTORY` (or optimum) wrote.

        threads: how many onnxruntime may use for one operator; 0 leaves it to onnxruntime.
        arrange: lay large weights out so that they are read faster, which takes some seconds for each GB of them.
        libraries: of operators that the graphs need and onnxruntime has not; a directory cannot name them itself.
        """
        place = Path(directory)
        record = directories.record(place, cls.graphs)
        config, told = _config(place), _generation_config(place)
        asked = {"level": record.settings.level, "disabled": record.settings.disabled, "libraries": libraries, "threads": threads}
        sessions = {name: directories.opened(place / name, arrange, **asked) for name in cls.graphs}
        made = _named_after(config, cls)(sessions, config, told, record.longest)
        made.name_or_path = str(place)
        return made

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the model computes in."""
        return getattr(self.config, "dtype", None) or torch.float32

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Return what transformers' own `generate` does."""
        with _one_torch_thread():
            return super().generate(*args, **kwargs)

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


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Keep torch on one thread: its others would spin for a while after every operator, on the cores that onnxruntime needs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _named_after(config: PretrainedConfig, kind: type[OnnxGenerator]) -> Any:
    """Return the class under the name of the model's own, or of its family's: pipelines tell by it what a model can do."""
    name = (config.architectures or [kind.__name__])[0]
    if not hasattr(transformers, name):
        name = kind.families.get(config.model_type, name)
    return type(name, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _config(place: Path) -> PretrainedConfig:
    """Return the config in a directory; that of a class which transformers does not know has the same values and no code."""
    path = place / "config.json"
    held = configs.read(path)
    with configs.reading(path):
        if held.get("model_type") not in CONFIG_MAPPING:
            return PretrainedConfig.from_dict(held)
        return AutoConfig.from_pretrained(place, trust_remote_code=False, local_files_only=True)


def _generation_config(place: Path) -> GenerationConfig | None:
    path = place / "generation_config.json"
    if not path.is_file():
        return None
    with configs.reading(path):
        return as_loaded(GenerationConfig.from_dict(intake.parsed(intake.text_of(path), str(path))))
