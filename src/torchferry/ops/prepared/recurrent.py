"""LSTM, GRU and RNN as the one ONNX operator that they are: any length, packed or padded, projected, in either direction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from torchferry.eager.within import within
from torchferry.foreign.torch_operators import onnx_placeholder
from torchferry.ops.prepared import packing

# torch keeps the gates in another order than ONNX: where each of ONNX's gates is found
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}
_FLOAT = 1  # onnx.TensorProto.FLOAT
_OPERATOR = {"LSTM": "LSTM", "GRU": "GRU", "RNN_TANH": "RNN", "RNN_RELU": "RNN"}

BY_NAME = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}


def is_needed(module: nn.Module) -> bool:
    """Whether a module has a recurrent layer of torch's own."""
    return any(_is_stock(part) for part in module.modules())


def _is_stock(part: nn.Module) -> bool:
    stock = isinstance(part, nn.RNNBase) and any(type(part).forward is kind.forward for kind in (nn.LSTM, nn.GRU, nn.RNN))
    return stock and not (part.training and part.dropout)  # type: ignore[union-attr]


def prepare(module: nn.Module) -> nn.Module:
    """Return the module with its recurrent layers as ONNX operators that honour the lengths of packed sequences."""
    for part in module.modules():
        if _is_stock(part):
            part.__class__ = type(type(part).__name__, (type(part),), {"forward": _forward})
    return within(module, lambda _: packing.packing())


def _forward(self: Any, input: Any, hx: Any = None) -> Any:
    """Return what the layer's own forward does, for a padded batch or a packed one."""
    states = None if hx is None else (tuple(hx) if self.mode == "LSTM" else (hx,))
    if isinstance(input, PackedSequence):
        lengths, padded = packing.lengths(input), packing.padded(input)
        states = states and tuple(_reordered(s, input.sorted_indices) for s in states)
        output, last = _layers(self, padded, lengths, states)
        last = tuple(_reordered(s, input.unsorted_indices) for s in last)
        return packing.repacked(output, input), _shaped(self, last)
    single = input.dim() == 2
    x = input.unsqueeze(0 if self.batch_first else 1) if single else input
    x = x.transpose(0, 1) if self.batch_first else x
    states = states and tuple(s.unsqueeze(1) if single else s for s in states)
    output, last = _layers(self, x, None, states)
    output = output.transpose(0, 1) if self.batch_first else output
    if single:
        output, last = output.squeeze(0 if self.batch_first else 1), tuple(s.squeeze(1) for s in last)
    return output, _shaped(self, last)


def of_flat(name: str, x: Tensor, states: Any, weights: list[Tensor], *settings: Any) -> tuple[Tensor, ...]:
    """Return aten's own recurrent function of a padded batch, whose weights come as a flat list."""
    bias, layers, _dropout, _train, both, batch_first = settings
    sides, each = ("", "_reverse") if both else ("",), len(weights) // (layers * (2 if both else 1))
    parts = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if bias else []) + (["weight_hr"] if each in (3, 5) else [])
    names = [f"{part}_l{layer}{side}" for layer in range(layers) for side in sides for part in parts]
    hidden = weights[0].shape[0] // len(_GATES[BY_NAME[name]])
    shape = {"mode": BY_NAME[name], "num_layers": layers, "bidirectional": both, "hidden_size": hidden}
    layer = SimpleNamespace(**shape, **dict(zip(names, weights, strict=True)))
    given = tuple(states) if name == "lstm" else (states,)
    output, last = _layers(layer, x.transpose(0, 1) if batch_first else x, None, given)
    return (output.transpose(0, 1) if batch_first else output, *last)


def _shaped(layer: Any, last: tuple[Tensor, ...]) -> Any:
    return last if layer.mode == "LSTM" else last[0]


def _reordered(state: Tensor, order: Tensor | None) -> Tensor:
    return state if order is None else state.index_select(1, order)


def _layers(rnn: Any, x: Tensor, lengths: Tensor | None, states: tuple[Tensor, ...] | None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the outputs (time, batch, features) and the last states of all layers and directions."""
    sides = ("", "_reverse") if rnn.bidirectional else ("",)
    ends: list[tuple[Tensor, ...]] = []
    for layer in range(rnn.num_layers):
        outputs = []
        for n, side in enumerate(sides):
            at = layer * len(sides) + n
            start = None if states is None else tuple(s[at] for s in states)
            output, end = _direction(rnn, x, lengths, start, name=f"l{layer}{side}")
            outputs.append(output)
            ends.append(end)
        x = torch.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
    return x, tuple(torch.stack([end[k] for end in ends]) for k in range(len(ends[0])))


def _direction(
    rnn: Any, x: Tensor, lengths: Tensor | None, start: tuple[Tensor, ...] | None, *, name: str
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return one direction of one layer: its outputs and its last states."""
    dtype, reverse = x.dtype, name.endswith("_reverse")
    get: dict[str, Any] = {
        part: getattr(rnn, f"{part}_{name}", None) for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    }
    w, r, project = (get[part] for part in ("weight_ih", "weight_hh", "weight_hr"))
    if project is not None:
        if start is not None:
            x, w = _with_start(x, (w, r), start[0], lengths, reverse=reverse)
            start = (start[0].new_zeros(start[0].shape[0], rnn.hidden_size), start[1])
        r = r @ project  # the projected state is this product of the whole one, and so are the gates that see it
    biases = (get["bias_ih"], get["bias_hh"])
    found = _operator(rnn, x.float(), lengths, start, weights=(w.float(), r.float(), *biases), reverse=reverse)
    output, last = found[0].to(dtype), tuple(s.to(dtype) for s in found[1])
    if project is not None:
        output, last = output @ project.T, (last[0] @ project.T, *last[1:])
    return output, last


def _with_start(
    x: Tensor, weights: tuple[Tensor, Tensor], start: Tensor, lengths: Tensor | None, *, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Return input and weight widened by the initial state, seen at the first step alone.

    The operator knows the state before projection only, of which many give the same projected one.
    """
    time = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    first = torch.zeros_like(time) if not reverse else (x.shape[0] - 1 if lengths is None else lengths.unsqueeze(0) - 1)
    seen = (time == first).to(x.dtype).expand(x.shape[0], x.shape[1]).unsqueeze(-1) * start.unsqueeze(0)
    return torch.cat([x, seen], -1), torch.cat(weights, 1)


def _operator(
    rnn: Any, x: Tensor, lengths: Tensor | None, start: tuple[Tensor, ...] | None, *, weights: tuple[Any, ...], reverse: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    order, hidden = _GATES[rnn.mode], rnn.hidden_size
    w, r = (_gates(weight, order).unsqueeze(0) for weight in weights[:2])
    b = None if weights[2] is None else torch.cat([_gates(bias.float(), order) for bias in weights[2:]]).unsqueeze(0)
    states = [None] * (2 if rnn.mode == "LSTM" else 1) if start is None else [s.float().unsqueeze(0) for s in start]
    time, batch = x.shape[0], x.shape[1]
    shapes = [(time, 1, batch, hidden)] + [(1, batch, hidden)] * len(states)
    steps = None if lengths is None else lengths.to(torch.int32)
    inputs = [x, w, r, b, steps, *states]
    while inputs[-1] is None:
        inputs.pop()
    made = onnx_placeholder(
        inputs, _OPERATOR[rnn.mode], [_FLOAT] * len(shapes), shapes=shapes, version=14, **_attributes(rnn, reverse)
    )
    return made[0].squeeze(1), tuple(m.squeeze(0) for m in made[1:])


def _attributes(rnn: Any, reverse: bool) -> dict[str, list[Any]]:
    """Return ONNX attributes as the placeholder takes them.

    `torch.onnx.ops` would pack them, but dynamo does not go in there, and it is dynamo that captures the body of a loop.
    """
    keys, types, spans = ["hidden_size", "direction"], ["i", "s"], [[0, 1], [0, 1]]
    numbers, words = [rnn.hidden_size], ["reverse" if reverse else "forward"]
    if rnn.mode == "GRU":
        keys, types, spans, numbers = [*keys, "linear_before_reset"], [*types, "i"], [*spans, [1, 2]], [*numbers, 1]
    if rnn.mode == "RNN_RELU":
        keys, types, spans, words = [*keys, "activations"], [*types, "ss"], [*spans, [1, 2]], [*words, "Relu"]
    packed: dict[str, list[Any]] = {"attr_keys": keys, "attr_types": types, "attr_pos": spans}
    packed |= {"attr_ints": numbers, "attr_floats": [], "attr_strs": words}
    return {**packed, "metadata_props_keys": [], "metadata_props_values": []}


def _gates(weight: Tensor, order: tuple[int, ...]) -> Tensor:
    if len(order) == 1:
        return weight
    parts = weight.chunk(len(order), 0)
    return torch.cat([parts[n] for n in order], 0)
