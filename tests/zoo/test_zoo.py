"""Real architectures from the example alone: verified with their sizes free, or refused in words. Never a lie.

Our own verdict is not trusted here: what is called verified is compared once more, at sizes and paddings of its own choice.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from architectures import ARCHITECTURES
from other_calls import difference, eager, others

import torchferry
from torchferry.inputs.binding.flat import is_output
from torchferry.inputs.binding.trees import outputs

QUICK = ("bert", "gpt2", "resnet")


def parameters() -> list[object]:
    return [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in ARCHITECTURES]


@pytest.mark.parametrize("name", parameters())
def test_architecture_crosses_or_is_refused_in_words(name: str, tmp_path: Path) -> None:
    model, example = ARCHITECTURES[name]()
    result = torchferry.export(model, (), tmp_path / "m.onnx", kwargs=dict(example), check=False)
    if not result.ok:
        errors = [d for d in result.diagnoses if d.severity == "error"]
        assert errors
        assert all(d.code != "RUN900" for d in errors), str(result)
        return
    session = torchferry.InferenceSession(str(result.path))
    for what, inputs in [("the example", example), *others(example)]:
        try:
            wanted = [leaf for _, leaf in outputs(eager(model, inputs)) if is_output(leaf)]
        except Exception:  # the model itself does not take this call, whatever it says
            continue
        try:
            feeds = result.feeds((), dict(inputs))
        except torchferry.FeedError:
            continue  # declared narrower than this, and said so
        for want, got in zip(wanted, session.run(None, feeds), strict=True):
            assert not difference(want, got, inputs.get("attention_mask")), what
