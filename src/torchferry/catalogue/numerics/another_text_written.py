"""NUM041: another-text-written."""

from __future__ import annotations

from torchferry.catalogue.finding_rule import FindingRule
from torchferry.records import Job, findings


class AnotherTextWritten(FindingRule[findings.TextDiffers]):
    """The directory writes another text than the model

    ## What happened
    The graph agrees with the model over its sizes, and yet, when both continue a text token by token, they do not go the same
    way. What lies between the graph and the text is `generate`: the model has code of its own there
    (`prepare_inputs_for_generation`, a cache that it fills itself) which a graph does not hold, or its `forward` does something
    else when it is called by `generate`. Two tokens that are equally likely up to rounding are no difference.
    ## Do instead
    Move what steers the generation into `forward`, or into the model's `generation_config`, which goes along with the graph. Or
    export the graph alone, to a file, and write the loop around it yourself.
    """

    code, stage, severity, since = "NUM041", "generate", "error", "0.2"

    def message(self, finding: findings.TextDiffers) -> str:
        words = "; ".join(
            f"{d.output}: {d.words}" for d in reversed(finding.differences)
        )  # what was read before what was computed
        return f"`{finding.text}`: {words}"

    def help(self, finding: findings.TextDiffers) -> str:
        return "look for what the model does in `generate` and not in `forward`, such as its `prepare_inputs_for_generation`"

    def evidence(self, finding: findings.TextDiffers) -> tuple[str, ...]:
        return (f"{finding.wrong} of {finding.texts} texts are written otherwise than by the model",)


SMALL = """from transformers import GPT2Config, GPT2LMHeadModel

import torchferry

small = {"vocab_size": 40, "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.5}
config = GPT2Config(**small, bos_token_id=0, eos_token_id=0)
"""
SHOWN = {
    "bad": f"""```python
{SMALL}

class CountingFromOne(GPT2LMHeadModel):
    def prepare_inputs_for_generation(self, *args, **kwargs):
        inputs = super().prepare_inputs_for_generation(*args, **kwargs)
        return inputs | {{"position_ids": inputs["position_ids"] + 1}}


torchferry.export(CountingFromOne(config), f="OUT/", task="text-generation")
```""",
    "good": f"""```python
{SMALL}
torchferry.export(GPT2LMHeadModel(config), f="OUT/", task="text-generation")
```""",
}


def bad() -> Job:
    from transformers import GPT2LMHeadModel

    class CountingFromOne(GPT2LMHeadModel):
        def prepare_inputs_for_generation(self, *args, **kwargs):
            inputs = super().prepare_inputs_for_generation(*args, **kwargs)
            return inputs | {"position_ids": inputs["position_ids"] + 1}

    return _generating(CountingFromOne)


def good() -> Job:
    from transformers import GPT2LMHeadModel

    return _generating(GPT2LMHeadModel)


def _generating(kind) -> Job:
    """Return the job of a small model whose graph completes a directory."""
    from dataclasses import replace

    from transformers import GPT2Config

    from torchferry.tasks import causal_lm
    from torchferry.tasks.directory import generation

    small = {"vocab_size": 40, "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.5}
    prepared = causal_lm.prepare(kind(GPT2Config(**small, bos_token_id=0, eos_token_id=0)).eval())
    return replace(prepared.parts[-1], generation=generation(prepared))
