"""Recurrent layers: one weight, used at every step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, integers, vectors


def read(layer: nn.Module) -> nn.Module:
    """A recurrent layer of four states, batch first or not, and classes from its outputs."""

    def forward(m: Any, x: Tensor) -> Tensor:
        first = m.layer.batch_first
        out = m.layer(x if first else x.transpose(0, 1))[0]
        logits: Tensor = m.head(out.mean(1 if first else 0))
        return logits

    return Net(forward, layer=layer, head=nn.Linear(8 if layer.bidirectional else 4, 3))


@case("property")
def rnn() -> Problem:
    """nn.RNN, batch first."""
    return classified(read(nn.RNN(6, 4, batch_first=True)), vectors(5, 3, 6))


@case("property")
def rnn_with_relu() -> Problem:
    """nn.RNN with another nonlinearity and without biases."""
    return classified(read(nn.RNN(6, 4, nonlinearity="relu", bias=False, batch_first=True)), vectors(5, 3, 6))


@case("property")
def lstm() -> Problem:
    """nn.LSTM: four gates in one weight, used at each step."""
    return classified(read(nn.LSTM(6, 4, batch_first=True)), vectors(5, 3, 6))


@case("opacus issue 206")
def gru() -> Problem:
    """nn.GRU: the bias of the new gate is inside a product."""
    return classified(read(nn.GRU(6, 4, batch_first=True)), vectors(5, 3, 6))


@case("property")
def lstm_sequence_first() -> Problem:
    """nn.LSTM as it is by default, (T, B, d), with B = T."""
    return classified(read(nn.LSTM(6, 4)), vectors(5, 5, 6))


@case("property")
def gru_sequence_first() -> Problem:
    """nn.GRU with the batch on axis 1."""
    return classified(read(nn.GRU(6, 4)), vectors(5, 3, 6))


@case("property")
def lstm_in_both_directions() -> Problem:
    """Two sets of weights, the second used from the end."""
    return classified(read(nn.LSTM(6, 4, batch_first=True, bidirectional=True)), vectors(5, 3, 6))


@case("property")
def lstm_stacked() -> Problem:
    """Two layers in one call."""
    return classified(read(nn.LSTM(6, 4, num_layers=2, batch_first=True)), vectors(5, 3, 6))


@case("property")
def lstm_projected() -> Problem:
    """proj_size: one more weight at each step."""
    model = Net(
        lambda m, x: m.head(m.layer(x)[0].mean(1)),
        layer=nn.LSTM(6, 4, proj_size=2, batch_first=True),
        head=nn.Linear(2, 3),
    )
    return classified(model, vectors(5, 3, 6))


@case("property")
def lstm_last_state() -> Problem:
    """The last state is read instead of the outputs, and batches have other lengths."""
    model = Net(lambda m, x: m.head(m.layer(x)[1][0][-1]), layer=nn.LSTM(6, 4, batch_first=True), head=nn.Linear(4, 3))
    return classified(model, vectors(5, 3, 6), vectors(5, 5, 6, seed=1), vectors(3, 1, 6, seed=2))


@case("property")
def cell_in_a_loop() -> Problem:
    """nn.LSTMCell called once for each step: a parameter with as many uses as steps."""

    def forward(m: Any, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 4), x.new_zeros(len(x), 4)
        for t in range(x.shape[1]):
            state = m.cell(x[:, t], state)
        logits: Tensor = m.head(state[0])
        return logits

    return classified(Net(forward, cell=nn.LSTMCell(6, 4), head=nn.Linear(4, 3)), vectors(5, 3, 6))


@case("property")
def gru_cell_in_a_loop() -> Problem:
    """nn.GRUCell without an initial state, which makes one of zeros."""

    def forward(m: Any, x: Tensor) -> Tensor:
        state = None
        for t in range(x.shape[1]):
            state = m.cell(x[:, t], state)
        logits: Tensor = m.head(state)
        return logits

    return classified(Net(forward, cell=nn.GRUCell(6, 4), head=nn.Linear(4, 3)), vectors(5, 3, 6))


@case("property")
def by_hand() -> Problem:
    """A recurrence of two linear layers: what nn.RNN is, in calls that everyone sees."""

    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.start.expand(len(x), 4)
        for t in range(x.shape[1]):
            h = (m.i(x[:, t]) + m.h(h)).tanh()
        logits: Tensor = m.head(h)
        return logits

    parts = {"i": nn.Linear(6, 4), "h": nn.Linear(4, 4, False), "start": torch.randn(1, 4), "head": nn.Linear(4, 3)}
    return classified(Net(forward, **parts), vectors(5, 3, 6))


@case("property")
def learned_state() -> Problem:
    """The initial state is a parameter, (layers, 1, states), expanded over the batch."""
    model = Net(
        lambda m, x: m.head(m.layer(x, m.start.expand(-1, len(x), -1).contiguous())[0].mean(1)),
        layer=nn.GRU(6, 4, batch_first=True), start=torch.randn(1, 1, 4), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 3, 6))


@case("property")
def given_state() -> Problem:
    """The initial state is computed from the example."""
    model = Net(
        lambda m, x: m.head(m.layer(x[:, 1:], m.a(x[:, 0]).tanh()[None])[0].mean(1)),
        layer=nn.GRU(6, 4, batch_first=True), a=nn.Linear(6, 4), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


def packed(lengths: list[int]) -> Problem:
    """An LSTM on sequences of these lengths, packed, and the mean over each one's own steps."""

    def forward(m: Any, x: Tensor, n: Tensor) -> Tensor:
        out = m.layer(pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False))[0]
        logits: Tensor = m.head(pad_packed_sequence(out, batch_first=True)[0].sum(1) / n[:, None])
        return logits

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"], batch["n"]), batch["y"], reduction="none")

    batch = {"x": vectors(5, 4, 6), "n": torch.tensor(lengths), "y": integers(3, 5)}
    return Problem(Net(forward, layer=nn.LSTM(6, 4, batch_first=True), head=nn.Linear(4, 3)), losses, (Call(batch),))


@case("opacus pull request 116")
def packed_sequences() -> Problem:
    """Packed sequences of several lengths: the batch shrinks from step to step, and is sorted."""
    return packed([2, 4, 1, 3, 3])


@case("opacus pull request 116")
def packed_sequences_of_one_length() -> Problem:
    """Packed sequences that are all as long: rows of a batch that look like folded ones."""
    return packed([4, 4, 4, 4, 4])


@case("property")
def embedded() -> Problem:
    """A text model: embedding, LSTM, head on all steps; the embedding is read once."""
    model = Net(
        lambda m, x: m.head(m.layer(m.e(x))[0]).mean(1),
        e=nn.Embedding(9, 6, padding_idx=0), layer=nn.LSTM(6, 4, batch_first=True), head=nn.Linear(4, 3),
    )  # fmt: skip
    return classified(model, integers(9, 5, 4))


@case("property", refused="mixes examples: the second axis is taken for the batch's, so that states run through it")
def batch_first_by_mistake() -> Problem:
    """A batch-first input into a layer that is not: the recurrence runs over the examples."""
    model = Net(lambda m, x: m.head(m.layer(x)[0].mean(1)), layer=nn.GRU(6, 4), head=nn.Linear(4, 3))
    return classified(model, vectors(5, 3, 6))
