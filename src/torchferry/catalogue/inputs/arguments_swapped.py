"""INP003."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class ArgumentsSwapped(Rule):
    """Two positional arguments seem to have changed places

    ## What happened
    The model runs, but the mask that it got hides everything, or holds numbers that no mask holds, while another argument
    of the same shape looks just like a mask. `tuple(encoding.values())` does this: a tokenizer's order is `input_ids,
    token_type_ids, attention_mask`, BERT's parameters are `input_ids, attention_mask, token_type_ids`.

    ## Do instead
    Pass the arguments by name: `export(model, (), f, kwargs=dict(encoding))`.
    """

    code, stage = "INP003", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.SwappedArguments):
            yield Diagnosis(
                self.code,
                f"argument {finding.position} went to the parameter `{finding.parameter}`, but it does not look like a mask; "
                f"argument {finding.other_position}, bound to `{finding.looks_like}`, does: they seem to be swapped",
                f"pass them by name: kwargs={{'{finding.parameter}': ..., '{finding.looks_like}': ...}}",
                finding.location or Location(),
            )


def bad() -> Job:
    """A tokenizer's order of values for a model that wants another."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.types = torch.nn.Embedding(20, 4), torch.nn.Embedding(2, 4)

        def forward(self, input_ids, attention_mask, token_type_ids):  # type: ignore[no-untyped-def]
            return (self.words(input_ids) + self.types(token_type_ids)) * attention_mask[:, :, None]

    ids = torch.randint(2, 20, (2, 5))
    return Job(Model().eval(), (ids, torch.zeros_like(ids), torch.ones_like(ids)))


def good() -> Job:
    """The model's own order."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.types = torch.nn.Embedding(20, 4), torch.nn.Embedding(2, 4)

        def forward(self, input_ids, attention_mask, token_type_ids):  # type: ignore[no-untyped-def]
            return (self.words(input_ids) + self.types(token_type_ids)) * attention_mask[:, :, None]

    ids = torch.randint(2, 20, (2, 5))
    return Job(Model().eval(), (ids, torch.ones_like(ids), torch.zeros_like(ids)))
