"""Arguments that went to the wrong parameter are recognised, and re-bound when exactly one reading works."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchferry.edits.inputs import BindByName
from torchferry.inputs import bind
from torchferry.records import Case, Job
from torchferry.records.findings import MisboundArgument, SwappedArguments

IDS = torch.randint(2, 20, (2, 5))
ONES = torch.ones_like(IDS)


class Gpt(torch.nn.Module):
    """Its second parameter is a cache, as in GPT-2; it ignores `encoder_attention_mask`, as GPT-2 does without an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = torch.nn.Embedding(20, 4)

    def forward(self, input_ids, past_key_values=None, attention_mask=None, encoder_attention_mask=None):  # type: ignore[no-untyped-def]
        start = past_key_values.get_seq_length() if past_key_values is not None else 0
        x = self.emb(input_ids) + start
        return x if attention_mask is None else x * attention_mask[..., None]


def found(**options: Any) -> Any:
    return bind(Case(Job(Gpt().eval(), (IDS, ONES), **options)))


@pytest.mark.parametrize(
    "names", [("input_ids", "attention_mask"), None], ids=["by the names given", "by what the model looks at"]
)
def test_a_mask_in_the_place_of_the_cache_is_bound_to_the_mask(names: Any) -> None:
    step = found(input_names=names)
    assert step.fault is not None
    (finding,) = [f for f in step.findings if isinstance(f, MisboundArgument)]
    assert finding.bound_to == "past_key_values"
    assert finding.meant == "attention_mask"
    mended = found(input_names=names, edits=(BindByName(finding.names),))
    assert mended.fault is None
    assert [s.name for s in mended.value.signature.inputs] == ["input_ids", "attention_mask"]
    assert list(mended.value.feeds((IDS, ONES), {})) == ["input_ids", "attention_mask"]


def test_names_that_contradict_a_call_that_works_are_a_finding() -> None:
    def model(input_ids, attention_mask=None, token_type_ids=None):  # type: ignore[no-untyped-def]
        return input_ids * (ONES if attention_mask is None else attention_mask) + (
            0 if token_type_ids is None else token_type_ids
        )

    step = bind(Case(Job(model, (IDS, ONES), input_names=("input_ids", "token_type_ids"))))
    assert [f.meant for f in step.findings if isinstance(f, MisboundArgument)] == ["token_type_ids"]


@pytest.mark.parametrize("args", [(IDS, ONES * 0, ONES), (ONES, IDS, ONES * 0)], ids=["mask and types", "mask and ids"])
def test_swapped_arguments_are_a_finding(args: Any) -> None:
    def model(input_ids, attention_mask, token_type_ids):  # type: ignore[no-untyped-def]
        return input_ids * attention_mask + token_type_ids

    step = bind(Case(Job(model, args)))
    (finding,) = [f for f in step.findings if isinstance(f, SwappedArguments)]
    assert finding.parameter == "attention_mask"
    assert finding.position == 2


def test_a_call_in_order_is_no_finding() -> None:
    def model(input_ids, attention_mask, token_type_ids):  # type: ignore[no-untyped-def]
        return input_ids * attention_mask + token_type_ids

    assert bind(Case(Job(model, (IDS, ONES, ONES * 0)))).findings == ()
