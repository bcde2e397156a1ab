"""Fused recurrent layers as loops over time: linear layers and pointwise functions.

One linear layer takes the inputs of all T, then each step adds what the hidden state brings:
``s_t = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh``. A hidden weight is used T times.
Sources: Hochreiter, Schmidhuber 1997 (LSTM); Cho et al. 2014, 1406.1078 (GRU); Sak et al. 2014, 1402.1128
(projections). The order of the gates is torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.errors import Refused

State = tuple[Tensor, ...]
"""What goes from one step to the next, each (B, H): the hidden state first, then an LSTM's cell."""


class Weights(NamedTuple):
    """Of one layer in one direction, (gates H, d) and (gates H, H)."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    hr: Tensor | None = None
    """Of an LSTM's projection."""


Cell = Callable[[Tensor, State, Weights], State]
"""From what the input brings, ``W_ih x_t + b_ih``, and the state to the next state."""


def _lstm(given: Tensor, state: State, weights: Weights) -> State:
    h, c = state
    i, f, g, o = (given + F.linear(h, weights.hh, weights.b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if weights.hr is None else F.linear(h, weights.hr)), c


def _gru(given: Tensor, state: State, weights: Weights) -> State:
    (h,) = state
    (r, z, n), (hr, hz, hn) = given.chunk(3, -1), F.linear(h, weights.hh, weights.b_hh).chunk(3, -1)
    n = (n + (r + hr).sigmoid() * hn).tanh()
    return (n + (z + hz).sigmoid() * (h - n),)


def _tanh(given: Tensor, state: State, weights: Weights) -> State:
    return ((given + F.linear(state[0], weights.hh, weights.b_hh)).tanh(),)


def _relu(given: Tensor, state: State, weights: Weights) -> State:
    return ((given + F.linear(state[0], weights.hh, weights.b_hh)).relu(),)


def _in_time(cell: Cell, x: Tensor, state: State, weights: Weights, axis: int, *, backwards: bool) -> Any:
    """The hidden states of all steps, stacked on ``axis``, and the last state."""
    steps = F.linear(x, weights.ih, weights.b_ih).unbind(axis)
    hidden = []
    for given in reversed(steps) if backwards else steps:
        state = cell(given, state, weights)
        hidden.append(state[0])
    return torch.stack(hidden[::-1] if backwards else hidden, axis), state


def _layers(
    cell: Cell, x: Tensor, states: State, params: Sequence[Tensor], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The outputs of the last layer, (T, B, directions H) or batch first, and all last states."""
    directions = 2 if bidirectional else 1
    n = len(params) // (num_layers * directions)
    ends: list[State] = []
    for layer in range(num_layers):
        if layer and train and dropout:
            x = F.dropout(x, dropout)
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            own = list(params[n * k : n * (k + 1)])
            weights = Weights(*own) if has_biases else Weights(own[0], own[1], hr=own[2] if n > 2 else None)
            state = tuple([s[k] for s in states])
            out, end = _in_time(cell, x, state, weights, 1 if batch_first else 0, backwards=direction == 1)
            outs.append(out)
            ends.append(end)
        x = torch.cat(outs, -1) if bidirectional else outs[0]
    return x, *(torch.stack(parts) for parts in zip(*ends, strict=True))


def _fused(cell: Cell, name: str) -> Callable[..., Any]:
    """What ``torch.NAME`` does, ``(input, hx, params, ...)``; packed, ``(data, batch_sizes, hx, params, ...)``."""

    def unrolled(
        input: Tensor, hx: Any, params: Any, has_biases: Any, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool = False,
    ) -> Any:  # fmt: skip
        if isinstance(has_biases, (list, tuple)):
            if not any(weight.requires_grad for weight in has_biases):
                return NotImplemented
            raise Refused(
                f"torch.{name} reads a packed sequence, in which the examples' steps lie between each other. Give it "
                "the padded batch (no pack_padded_sequence), mask the loss, and take the states at the last real "
                "steps from the outputs."
            )
        states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        return _layers(
            cell, input, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
        )  # fmt: skip

    return unrolled


def _single(cell: Cell) -> Callable[..., Any]:
    """What ``torch.NAME_cell`` does: one step."""

    def step(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Any:
        state = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        state = cell(F.linear(input, w_ih, b_ih), state, Weights(w_ih, w_hh, b_ih, b_hh))
        return state if len(state) > 1 else state[0]

    return step


lstm, gru, rnn_tanh, rnn_relu = (
    _fused(cell, name)
    for cell, name in ((_lstm, "lstm"), (_gru, "gru"), (_tanh, "rnn_tanh"), (_relu, "rnn_relu"))
)  # fmt: skip
lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell = (_single(cell) for cell in (_lstm, _gru, _tanh, _relu))
