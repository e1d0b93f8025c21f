"""CAP060."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, findings


class PatchedByTransformers(Rule):
    """Patches of transformers itself stood in while one of its models was captured

    ## What happened
    The code of some models in transformers cannot be captured as it is. transformers has patches for them, in
    `transformers.exporters`, and its mixture-of-experts models can be computed in a way that has no loops. torchferry applies
    these while it captures a model of transformers and takes them away afterwards; it has none of its own for it. The file was
    compared with the model as it is, without patches.

    ## Do instead
    Nothing. Where a note says that the patches were not found, this release of transformers keeps them elsewhere: use the
    release that torchferry names, or `attn_implementation="eager"` and `experts_implementation="batched_mm"` when loading.
    """

    code, stage, severity = "CAP060", "capture", "note"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.TransformersPatches):
            fired, missing = finding.fired, finding.missing
            if missing:
                yield Diagnosis(self.code, f"the patches of transformers were not applied: {missing}", severity=self.severity)
            elif fired:
                names = ", ".join(f"`{name}`" for name in sorted(fired))
                evidence = tuple(f"{name}: {about}" for name, about in sorted(fired.items()))
                words = f"captured with patches of transformers in place of {names}"
                yield Diagnosis(self.code, words, evidence=evidence, severity=self.severity)


def bad() -> Job:
    """A BERT, whose attention transformers sends another way."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 20}
    return Job(BertModel(BertConfig(**sizes)).eval(), (torch.randint(0, 20, (2, 5)),))


def good() -> Job:
    """Attention of torch's own."""
    import torch

    class Attention(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    return Job(Attention().eval(), (torch.rand(2, 2, 5, 4),))
