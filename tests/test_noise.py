"""Random draws as inputs of the file: what the model draws is given to it, and the file can be verified."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import torchferry
from torchferry.capture.given_noise import Draws, as_inputs
from torchferry.errors import UsageError


class Sampled(nn.Module):
    def forward(self, mean):
        return mean + 0.1 * torch.randn_like(mean)


def test_a_draw_becomes_an_input_and_the_file_is_verified() -> None:
    result = torchferry.export(Sampled().eval(), (torch.rand(2, 3),), noise="input")
    session = torchferry.InferenceSession(str(result.path))
    assert [i.name for i in session.get_inputs()] == ["mean", "normal_noise_0"]
    x, noise = torch.rand(4, 3), torch.randn(4, 3)
    feeds = result.feeds((x,), {"normal_noise_0": noise})
    (got,) = session.run(None, feeds)
    np.testing.assert_allclose(got, (x + 0.1 * noise).numpy(), rtol=1e-5)


def test_without_asking_a_random_output_is_refused_as_before() -> None:
    result = torchferry.export(Sampled().eval(), (torch.rand(2, 3),), check=False)
    assert not result.ok
    assert [d.code for d in result.diagnoses if d.severity == "error"] == ["NUM006"]


DRAWS = {
    "normal": lambda x: torch.normal(x, 2.0),
    "normal_": lambda x: torch.empty_like(x).normal_(3.0, 0.5),
    "randn": lambda x: torch.randn(x.shape[0], 5000),
    "rand": lambda x: torch.rand(x.shape),
    "uniform_": lambda x: torch.empty_like(x).uniform_(-1, 3),
    "exponential_": lambda x: torch.empty_like(x).exponential_(2.0),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.3)),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.7),
    "dropout": lambda x: nn.functional.dropout(torch.ones_like(x), 0.25, training=True),
    "randint": lambda x: torch.randint(2, 6, x.shape).float(),
    "multinomial": lambda x: torch.multinomial(torch.tensor([1.0, 0.0, 3.0]), 5000, replacement=True).float(),
    "categorical": lambda x: torch.distributions.Categorical(probs=torch.tensor([0.2, 0.5, 0.3])).sample((5000,)).float(),
    "rsample": lambda x: torch.distributions.Normal(x, 0.5).rsample(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_given_draw_has_the_distribution_that_torch_draws(name: str) -> None:
    torch.manual_seed(0)
    x = torch.zeros(2, 5000)
    plain = DRAWS[name](x).double()
    with Draws() as draws:
        given = DRAWS[name](x).double()
    assert len(draws.given) == 1
    assert given.shape == plain.shape
    assert abs(given.mean() - plain.mean()) < 6 * plain.std() / plain.numel() ** 0.5 + 1e-9
    assert abs(given.std() - plain.std()) < 0.1 * plain.std() + 1e-9


def test_the_same_noise_gives_the_same_output() -> None:
    model, kwargs = as_inputs(Sampled(), (torch.rand(2, 3),), {})
    x = torch.rand(2, 3)
    torch.testing.assert_close(model(x, **kwargs), model(x, **kwargs))
    with pytest.raises(ValueError, match="has the shape"):
        model(torch.rand(4, 3), **kwargs)


def test_a_model_that_draws_nothing_is_told_so() -> None:
    with pytest.raises(UsageError, match="drew no random numbers"):
        torchferry.export(nn.Linear(2, 2), (torch.rand(1, 2),), noise="input")
    with pytest.raises(UsageError, match="noise is"):
        torchferry.export(Sampled(), (torch.rand(1, 2),), noise="yes")


def test_further_examples_get_noise_of_their_own() -> None:
    others = [(torch.rand(5, 7),), ((torch.rand(1, 4),), {})]
    result = torchferry.export(Sampled().eval(), (torch.rand(2, 3),), examples=others, noise="input")
    assert result.ok


class Masked(nn.Module):
    """Noise of the input's batch and of twice its length, and noise of a size of its own."""

    def forward(self, x):
        wide = torch.randn(x.shape[0], 2 * x.shape[1])
        return x + wide[:, ::2] * torch.rand(4).sum()


@pytest.mark.parametrize(
    "said",
    [
        {"dynamic_shapes": {"x": {0: "batch", 1: "length"}}},
        {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)},
        {"dynamic_axes": {"x": {0: "batch", 1: "length"}}},
    ],
)
def test_noise_has_the_sizes_that_the_model_draws_where_those_of_its_inputs_are_named(said) -> None:
    result = torchferry.export(Masked().eval(), (torch.rand(2, 3),), noise="input", **said)
    named = {i.name: i.shape for i in torchferry.InferenceSession(str(result.path)).get_inputs()}
    batch, length = named["x"]
    assert named["normal_noise_0"] == [batch, f"2*{length}"]
    assert named["uniform_noise_1"] == [4]
    if "DYNAMIC" not in str(said):
        assert (batch, length) == ("batch", "length")


def test_noise_stays_fixed_along_axes_that_were_not_asked_to_move() -> None:
    result = torchferry.export(Sampled().eval(), (torch.rand(2, 3),), noise="input", dynamic_axes={"mean": {0: "batch"}})
    named = {i.name: i.shape for i in torchferry.InferenceSession(str(result.path)).get_inputs()}
    assert named == {"mean": ["batch", 3], "normal_noise_0": ["batch", 3]}
