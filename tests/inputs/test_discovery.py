"""Which sizes move, how far, and why they end: found on the eager model, told in a table."""

from __future__ import annotations

import sys
import time

import pytest
import torch
from torch import nn

from torchferry.inputs import bind
from torchferry.records import Bound, Case, Dim, Job, Step


def step(job: Job) -> Step:
    answer = bind(Case(job))
    assert answer.fault is None, answer.fault
    return answer


def bound(job: Job) -> Bound:
    return step(job).value


def dims(found: Bound) -> dict[str, Dim]:
    return {d.name: d for d in found.signature.dims}


class Language(nn.Module):
    def __init__(self, rows: int = 20, offset: int = 0) -> None:
        super().__init__()
        self.wte, self.wpe, self.offset = nn.Embedding(50, 8), nn.Embedding(rows, 8), offset

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]) + self.offset)
        return x if attention_mask is None else x * attention_mask[:, :, None]


def test_a_language_model_has_a_batch_and_a_length_that_ends_with_its_positions() -> None:
    ids = torch.randint(0, 50, (2, 5))
    answer = step(Job(Language().eval(), (ids, torch.ones_like(ids))))
    assert answer.notes[:2] == (
        "batch_size = input_ids[0] = attention_mask[0] (1..)",
        "sequence_length = input_ids[1] = attention_mask[1] (1..20: wpe has 20 rows)",
    )


def test_positions_that_do_not_start_at_zero_leave_fewer() -> None:
    found = bound(Job(Language(offset=2).eval(), (torch.randint(0, 50, (2, 5)),)))
    assert dims(found)["sequence_length"].high == 18


def test_distances_in_buckets_set_no_bound() -> None:
    class Buckets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Embedding(8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            steps = torch.arange(x.shape[1])
            return x + self.bias((steps[None] - steps[:, None]).abs().clamp(max=7))[..., 0].sum(0)[:, None]

    assert dims(bound(Job(Buckets().eval(), (torch.randn(2, 4, 3),))))["sequence_length"].high is None


def test_a_buffer_of_positions_sets_a_bound_and_a_kernel_the_other() -> None:
    class Signal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(2, 2, 5)
            self.register_buffer("pos", torch.randn(1, 2, 24))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.conv(x + self.pos[:, :, : x.shape[2]])

    found = bound(Job(Signal().eval(), (torch.randn(2, 2, 9),)))
    (length,) = [d for d in found.signature.dims if d.name != "batch_size"]
    assert (length.low, length.high, length.why) == (5, 24, "pos has 24 rows")


def test_channels_are_fixed_and_the_reason_is_named() -> None:
    class Picture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 4, 3)

        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return self.conv1(pixel_values)

    answer = step(Job(Picture().eval(), (torch.randn(1, 3, 8, 8),)))
    assert [s.shape for s in answer.value.signature.inputs] == [("batch_size", 3, "height", "width")]
    assert "pixel_values[1] = 3 (conv1 wants 3 channels)" in answer.notes


def test_the_width_of_a_packed_sequence_is_fixed_by_the_layer_that_takes_it() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return self.lstm(packed)[1][0][-1]

    found = bound(Job(Packed().eval(), (torch.randn(2, 5, 3), torch.tensor([5, 3]))))
    assert found.signature.inputs[0].shape[2] == 3


def test_a_size_that_decides_how_many_outputs_there_are_is_fixed() -> None:
    answer = step(Job(lambda x: {f"step_{n}": part * 2 for n, part in enumerate(x.unbind(1))}, (torch.randn(2, 3, 4),)))
    assert [s.shape for s in answer.value.signature.inputs] == [("batch_size", 3, "features")]
    assert "x[1] = 3 (there are 5 outputs at another size, here 3)" in answer.notes


def test_an_example_with_a_batch_of_one_is_made_again_with_more() -> None:
    found = bound(Job(nn.Linear(4, 2).eval(), (torch.randn(1, 4),)))
    assert found.args[0].shape[0] >= 2
    assert dims(found)["batch_size"].low == 1


def test_a_batch_of_one_hides_no_tie() -> None:
    found = bound(Job(lambda x, y: x + y, (torch.randn(1, 4), torch.randn(1, 4))))
    assert [s.shape for s in found.signature.inputs] == [("batch_size", "length"), ("batch_size", "length")]


def test_a_mask_that_broadcasts_stays_one() -> None:
    found = bound(Job(lambda x, m: x + m, (torch.randn(2, 3, 5, 5), torch.zeros(1, 1, 5, 5))))
    x, mask = (s.shape for s in found.signature.inputs)
    assert mask[1] == 1
    assert mask[2:] == x[2:]


def test_a_size_that_moves_in_steps_is_found() -> None:
    class Windows(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(x.shape[0], -1, 4, x.shape[2]).sum(2)

    found = bound(Job(Windows(), (torch.randn(2, 8, 3),)))
    length = dims(found)["sequence_length"]
    assert (length.multiple_of, length.low) == (4, 4)


def test_a_size_that_is_at_its_largest_only_shrinks() -> None:
    class Full(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(6, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table[: x.shape[1]]

    assert dims(bound(Job(Full(), (torch.randn(2, 6, 3),))))["sequence_length"].high == 6


def test_masks_that_hide_nothing_are_tied_all_the_same() -> None:
    class Shortcut(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x if mask.all() else x * mask[:, :, None]

    found = bound(Job(Shortcut(), (torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))))
    x, mask = (s.shape for s in found.signature.inputs)
    assert mask == x[:2]


def test_indices_stay_below_the_size_that_they_point_into() -> None:
    class Scatter(nn.Module):
        def forward(self, base: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return base.scatter_add(0, index, value)

    found = bound(Job(Scatter(), (torch.zeros(5), torch.tensor([0, 4, 2]), torch.rand(3))))
    base, index, value = (s.shape for s in found.signature.inputs)
    assert index == value != base
    for seed in range(5):
        assert int(found.vary({str(base[0]): 2}, "random", seed)[1].max()) < 2


def test_a_cache_and_a_mask_over_past_and_new_tokens_are_tied_by_their_sum() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=30
    )
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 30, (2, 5))
    with torch.no_grad():
        past = model(ids).past_key_values
    call = {"input_ids": ids[:, :1], "attention_mask": torch.ones(2, 6, dtype=torch.long), "past_key_values": past}
    found = bound(Job(model, (), call))
    shapes = {s.name: s.shape for s in found.signature.inputs}
    assert shapes["input_ids"] == ("batch_size", "sequence_length")
    assert shapes["attention_mask"] == ("batch_size", "past_sequence_length + sequence_length")
    assert shapes["past_key_values.1.value"] == ("batch_size", 2, "past_sequence_length", 4)
    assert found.outputs[:3] == ("logits", "present.0.key", "present.0.value")
    assert dims(found)["past_sequence_length"].low == 0


def test_probing_a_small_model_takes_no_time() -> None:
    began = time.perf_counter()
    bound(Job(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval(), (torch.randn(2, 4),)))
    assert time.perf_counter() - began < 5


def test_no_name_of_a_size_is_a_symbol_of_torch() -> None:
    found = bound(Job(lambda a, b, c: (a @ b, c), (torch.randn(2, 3), torch.randn(3, 4), torch.randn(2, 2, 2, 2, 2, 2))))
    assert all((d.name.isidentifier() and not d.name.startswith("s")) or "_" in d.name for d in found.signature.dims)


def test_rows_that_belong_together_are_one_batch_though_the_model_takes_them_apart() -> None:
    class Lenient(nn.Module):
        def forward(self, sound: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
            return text + sound.mean(1)[: text.shape[0]].sum(-1, keepdim=True) if len(text) == len(sound) else text

    found = bound(Job(Lenient(), (torch.randn(3, 6, 2), torch.randn(3, 4))))
    assert [s.shape[0] for s in found.signature.inputs] == ["batch_size", "batch_size"]


def test_rows_that_meet_each_other_are_two_batches() -> None:
    found = bound(Job(torch.cdist, (torch.randn(3, 4), torch.randn(3, 4))))
    assert len({s.shape[0] for s in found.signature.inputs}) == 2


def test_outputs_that_never_meet_leave_their_inputs_apart() -> None:
    found = bound(Job(lambda x, y: (x * 2, y + 1), (torch.randn(3, 4), torch.randn(3, 5))))
    assert len({s.shape[0] for s in found.signature.inputs}) == 2


def test_a_recurrent_layer_with_time_first_has_its_batch_second() -> None:
    state = torch.randn(1, 2, 3), torch.randn(1, 2, 3)
    found = bound(Job(nn.LSTM(4, 3).eval(), (torch.randn(5, 2, 4), state)))
    assert [s.shape for s in found.signature.inputs] == [
        ("sequence_length", "batch_size", 4),
        (1, "batch_size", 3),
        (1, "batch_size", 3),
    ]


@pytest.mark.parametrize("slow", [False, True], ids=["on tensors", "on stand-ins"])
def test_a_slow_model_is_tried_without_computing(slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if slow:
        monkeypatch.setattr("torchferry.inputs.sizes.discover.SLOW", 0.0)
    ids = torch.randint(0, 50, (2, 5))
    found = bound(Job(Language().eval(), (ids, torch.ones_like(ids))))
    assert [s.shape for s in found.signature.inputs] == [("batch_size", "sequence_length")] * 2
    assert dims(found)["sequence_length"].high == 20


def test_a_slow_model_that_looks_at_values_is_tried_on_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchferry.inputs.sizes.discover.SLOW", 0.0)
    found = bound(Job(lambda x: x if x.sum() > 0 else -x, (torch.randn(3, 4),)))
    assert [s.shape for s in found.signature.inputs] == [("batch_size", "length")]


def test_a_size_that_was_never_tried_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[bind.__module__], "CALLS", 3)
    answer = step(Job(nn.Tanh(), (torch.rand(3, 4, 5, 6),)))
    assert any("not tried" in line for line in answer.notes)


def test_ties_within_one_input_are_tried_and_no_symbolic_run_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x + torch.ones(5)[: x.shape[0]].sum() * x.reshape(x.shape[0], 3, -1).mean()

    monkeypatch.setattr(sys.modules["torchferry.inputs.sizes.discover"], "symbolic_sizes", pytest.fail)
    shape = bound(Job(Square(), (torch.rand(2, 6, 6),))).signature.inputs[0].shape
    assert shape[1] == shape[2]
    assert isinstance(shape[1], str)
