"""Dynamically quantised LSTM, GRU and their cells: whole numbers times whole numbers, anew at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchferry.foreign.torch_control_flow import scan
from torchferry.quantised.arithmetic import dynamic
from torchferry.quantised.unpacked import Cell, Unpacked

State = tuple[Tensor, ...]
Step = Callable[[Tensor, Tensor, State], State]


def linear(x: Tensor, packed: Unpacked, reduce_range: bool) -> Tensor:
    """Return `linear_dynamic`: activations rounded to 7 or 8 bits by their own range, the product of integers scaled back."""
    if packed.scale is None:
        return functional.linear(x, packed.values(), packed.bias)
    whole, step = dynamic(x, reduce_range)
    product = functional.linear(whole, packed.whole()) * (step * packed.channels(1))
    return product if packed.bias is None else product + packed.bias


def _lstm_step(gates: Tensor, hidden: Tensor, state: State) -> State:
    i, f, g, o = (gates + hidden).chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _gru_step(gates: Tensor, hidden: Tensor, state: State) -> State:
    (ir, iz, inew), (hr, hz, hnew) = gates.chunk(3, -1), hidden.chunk(3, -1)
    keep, new = torch.sigmoid(iz + hz), torch.tanh(inew + torch.sigmoid(ir + hr) * hnew)
    return ((state[0] - new) * keep + new,)


def lstm(x: Tensor, hx: State, cells: list[Cell], *settings: Any, **rest: Any) -> State:
    """Return outputs and the last states of a quantised LSTM over a padded batch."""
    return _layers(_lstm_step, x, tuple(hx), cells, settings)


def gru(x: Tensor, hx: Tensor, cells: list[Cell], *settings: Any, **rest: Any) -> State:
    """Return outputs and the last state of a quantised GRU over a padded batch."""
    return _layers(_gru_step, x, (hx,), cells, settings)


def lstm_cell(x: Tensor, hx: State, ih: Unpacked, hh: Unpacked, *biases: Any) -> State:
    """Return the next state of a quantised LSTM cell."""
    return _lstm_step(linear(x, ih, True), linear(hx[0], hh, True), tuple(hx))


def gru_cell(x: Tensor, hx: Tensor, ih: Unpacked, hh: Unpacked, *biases: Any) -> Tensor:
    """Return the next state of a quantised GRU cell."""
    return _gru_step(linear(x, ih, True), linear(hx, hh, True), (hx,))[0]


def tanh_cell(x: Tensor, hx: Tensor, ih: Unpacked, hh: Unpacked, *biases: Any) -> Tensor:
    """Return the next state of a quantised RNN cell."""
    return torch.tanh(linear(x, ih, True) + linear(hx, hh, True))


def relu_cell(x: Tensor, hx: Tensor, ih: Unpacked, hh: Unpacked, *biases: Any) -> Tensor:
    """Return the next state of a quantised RNN cell with relu."""
    return torch.relu(linear(x, ih, True) + linear(hx, hh, True))


def _layers(step: Step, x: Tensor, states: State, cells: list[Cell], settings: tuple[Any, ...]) -> State:
    """Return outputs and last states; the settings are those of torch's functions, in their order."""
    _bias, layers, _dropout, _train, both, batch_first = settings
    x = x.transpose(0, 1) if batch_first else x
    last: list[State] = []
    for layer in range(layers):
        sides = []
        for side in range(2 if both else 1):
            n = layer * (2 if both else 1) + side
            along = x.flip(0) if side else x
            out, end = _sequence(step, cells[n], along, tuple(s[n] for s in states))
            sides.append(out.flip(0) if side else out)
            last.append(end)
        x = torch.cat(sides, -1) if both else sides[0]
    ends = tuple(torch.stack([end[k] for end in last]) for k in range(len(states)))
    return (x.transpose(0, 1) if batch_first else x, *ends)


def _sequence(step: Step, cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Return the outputs of one direction and its last state; in a capture a scan, so that any length will do."""
    gates = linear(x, cell.ih, cell.reduce_range)  # the kernel, too, rounds the whole sequence at once

    def body(now: State, gate: Tensor) -> tuple[list[Tensor], Tensor]:
        after = step(gate, linear(now[0], cell.hh, cell.reduce_range), tuple(now))
        return [a.clone() for a in after], after[0].clone()

    if torch.compiler.is_compiling():
        ends, outputs = scan(body, [s.clone() for s in state], gates, dim=0)
        return outputs, tuple(ends)
    made: list[Tensor] = []  # called as it is, a scan would compile its body anew for every cell
    for gate in gates:
        now, out = body(state, gate)
        state = tuple(now)
        made.append(out)
    return torch.stack(made), state
