"""INP002."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.edits.inputs import BindByName
from torchferry.records import Case, Diagnosis, Job, Location, Repair, findings


class ArgumentBoundToWrongParameter(Rule):
    """A positional argument went to a parameter that it is not meant for

    ## What happened
    Positional arguments go to parameters in the order of `forward`'s signature, whatever the names in `input_names`. In
    many models the second parameter is not the attention mask: GPT-2's is `past_key_values`, BART's differs again. The
    call as it stands fails or contradicts the names given, and exactly one other reading of it works.

    ## Do instead
    Pass the arguments by name: `kwargs={"input_ids": ids, "attention_mask": mask}`.

    ## Repair safety
    Safe: the arguments are passed by the names that you gave, or, without names, by the only ones under which the model
    runs and looks at them. What is verified is the model called in that way.
    """

    code, stage = "INP002", "inputs"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.MisboundArgument):
            said = "`input_names` calls it" if finding.by_names else "it can only be"
            yield Diagnosis(
                self.code,
                f"argument {finding.position} went to the parameter `{finding.bound_to}`, but {said} `{finding.meant}`",
                f"pass it by name: kwargs={{'{finding.meant}': ...}}",
                finding.location or Location(),
            )

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        for finding in case.findings(findings.MisboundArgument):
            names = list(finding.names)
            yield Repair(
                self.code,
                f"the arguments are passed by name: {', '.join(names)}",
                BindByName(tuple(names)),
            )


def bad() -> Job:
    """The mask lands in the place of the cache."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(20, 4)

        def forward(self, ids, cache=None, mask=None):  # type: ignore[no-untyped-def]
            start = cache.length if cache is not None else 0
            x = self.emb(ids) + start
            return x if mask is None else x * mask[:, :, None]

    ids, mask = torch.randint(0, 20, (2, 5)), torch.ones(2, 5)
    return Job(Model().eval(), (ids, mask), input_names=("ids", "mask"))


def good() -> Job:
    """The mask passed by name."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(20, 4)

        def forward(self, ids, cache=None, mask=None):  # type: ignore[no-untyped-def]
            start = cache.length if cache is not None else 0
            x = self.emb(ids) + start
            return x if mask is None else x * mask[:, :, None]

    return Job(Model().eval(), (torch.randint(0, 20, (2, 5)),), {"mask": torch.ones(2, 5)})
