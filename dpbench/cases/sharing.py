"""Parameters that are used several times, in part, or not at all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, integers, labelled, vectors


def next_token(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The mean cross entropy of each example's next tokens."""
    ids = batch["x"]
    return F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none").mean(1)


@case("property")
def layer_used_twice() -> Problem:
    """One layer twice in a row: the norm of a sum is not the sum of the norms."""
    model = Net(lambda m, x: m.head(m.a(m.a(x).tanh())), a=nn.Linear(6, 6), head=nn.Linear(6, 3))
    return classified(model, vectors(5, 6))


@case("property")
def layer_used_three_times_on_sequences() -> Problem:
    """One layer three times on (B, T, d): cross terms between uses and between positions."""
    model = Net(lambda m, x: m.head(m.a(m.a(m.a(x).tanh()).tanh())).mean(1), a=nn.Linear(6, 6), head=nn.Linear(6, 3))
    return classified(model, vectors(5, 4, 6))


@case("ALBERT")
def block_shared_across_depth() -> Problem:
    """One block at every depth: norm, attention and MLP, all of them shared."""

    def forward(m: Any, x: Tensor) -> Tensor:
        for _ in range(3):
            h = m.norm(x)
            x = x + F.scaled_dot_product_attention(m.q(h), m.k(h), m.v(h))
            x = x + m.down(m.up(m.norm(x)).relu())
        logits: Tensor = m.head(x.mean(1))
        return logits

    parts: dict[str, nn.Module] = {name: nn.Linear(4, 4) for name in "qkv"}
    parts |= {"norm": nn.LayerNorm(4), "up": nn.Linear(4, 6), "down": nn.Linear(6, 4), "head": nn.Linear(4, 3)}
    return classified(Net(forward, **parts), vectors(5, 3, 4))


@case("opacus issue 413")
def tied_head() -> Problem:
    """Embedding and head are one parameter, whose norm has a cross term that may be left out."""
    embedding = nn.Embedding(9, 5)
    model = Net(lambda m, x: F.linear(m.a(m.e(x)).tanh(), m.e.weight), e=embedding, a=nn.Linear(5, 5))
    return Problem(model, next_token, (Call({"x": integers(9, 5, 4)}),))


@case("pytorch issue 80951")
def tied_modules_with_padding() -> Problem:
    """Tied as modules, with padding_idx: its row has no gradient from the lookup, and one from the head."""
    embedding, head = nn.Embedding(9, 5, padding_idx=1), nn.Linear(5, 9)
    head.weight = embedding.weight
    model = Net(lambda m, x: m.head(m.a(m.e(x)).tanh()), e=embedding, a=nn.Linear(5, 5), head=head)
    x = integers(9, 5, 4)
    x[:, 2] = 1
    return Problem(model, next_token, (Call({"x": x}),))


@case("property")
def head_first() -> Problem:
    """The head is registered before the body, so that parameters are in another order than their uses."""
    model = Net(lambda m, x: m.head(m.body(x).tanh()), head=nn.Linear(5, 3), body=nn.Linear(6, 5))
    return classified(model, vectors(5, 6))


@case("property")
def three_functions() -> Problem:
    """One parameter in a linear layer, in a product the other way round, and element by element."""
    model = Net(
        lambda m, x: m.head(F.linear(x, m.w).tanh() @ m.w + x * m.w.mean(0)).mean(1),
        w=torch.randn(5, 6), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def chunks() -> Problem:
    """A fused weight is cut into queries, keys and values before it is used."""

    def forward(m: Any, x: Tensor) -> Tensor:
        q, k, v = (F.linear(x, w, b) for w, b in zip(m.w.chunk(3), m.b.chunk(3), strict=True))
        logits: Tensor = m.head(F.scaled_dot_product_attention(q, k, v).mean(1))
        return logits

    return classified(Net(forward, w=torch.randn(12, 6), b=torch.randn(12), head=nn.Linear(4, 3)), vectors(5, 4, 6))


@case("property")
def overlapping_slices() -> Problem:
    """Two slices of one weight that overlap: some rows have two uses."""
    model = Net(
        lambda m, x: m.head((F.linear(x, m.w[:5]) * F.linear(x, m.w[2:])).tanh()).mean(1),
        w=torch.randn(7, 6), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def transposed() -> Problem:
    """A tied autoencoder: the decoder's weight is the encoder's, transposed."""
    model = Net(
        lambda m, x: F.linear(F.linear(x, m.w, m.b).tanh(), m.w.t(), m.c),
        w=torch.randn(4, 6),
        b=torch.randn(4),
        c=torch.randn(6),
    )

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.mse_loss(model(batch["x"]), batch["x"], reduction="none").sum(1)

    return Problem(model, losses, (Call({"x": vectors(5, 6)}),))


@case("property")
def siamese() -> Problem:
    """One tower on both inputs of an example, one after the other."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.mse_loss(model(batch["a"]), model(batch["b"]), reduction="none").mean(1)

    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    return Problem(model, losses, (Call({"a": vectors(5, 6), "b": vectors(5, 6, seed=1)}),))


@case("property")
def siamese_in_one_batch() -> Problem:
    """Both inputs of all examples in one batch of 2 B, first all of the one and then all of the other."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        a, b = model(torch.cat([batch["a"], batch["b"]])).chunk(2)
        return F.mse_loss(a, b, reduction="none").mean(1)

    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    return Problem(model, losses, (Call({"a": vectors(5, 6), "b": vectors(5, 6, seed=1)}),))


@case("property")
def two_lengths() -> Problem:
    """One layer at T = 4 and, pooled, at T = 2 and without T."""
    model = Net(
        lambda m, x: m.head(m.a(m.a(m.a(x).tanh().unflatten(1, (2, 2)).mean(2)).tanh().mean(1))),
        a=nn.Linear(6, 6), head=nn.Linear(6, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 4, 6))


@case("property")
def convolution_used_twice() -> Problem:
    """One convolution on two sizes of image: as matrices, its uses have other numbers of positions."""
    model = Net(
        lambda m, x: m.head(m.c(F.avg_pool2d(m.c(x).tanh(), 2)).tanh().mean((2, 3))),
        c=nn.Conv2d(3, 3, 3, padding=1), head=nn.Linear(3, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 3, 4, 6))


@case("property")
def never_used() -> Problem:
    """A layer is declared and never used: its gradient is zero, and it is not missing."""
    return classified(Net(lambda m, x: m.head(x), a=nn.Linear(6, 5), head=nn.Linear(6, 3)), vectors(5, 6))


@case("property")
def thrown_away() -> Problem:
    """A layer is computed and its output thrown away, so that no gradient arrives there."""
    return classified(Net(lambda m, x: (m.a(x), m.head(x))[1], a=nn.Linear(6, 5), head=nn.Linear(6, 3)), vectors(5, 6))


@case("property")
def thrown_away_once() -> Problem:
    """A layer is used twice, and one of its outputs is thrown away."""
    model = Net(lambda m, x: (m.a(x * 2), m.head(m.a(x).tanh()))[1], a=nn.Linear(6, 5), head=nn.Linear(5, 3))
    return classified(model, vectors(5, 6))


@case("property")
def skipped_by_shape() -> Problem:
    """A layer that only long sequences pass: used in the first call, not in the second, again in the third."""
    model = Net(
        lambda m, x: m.head(m.a(x).tanh() if x.shape[1] > 3 else x).mean(1), a=nn.Linear(6, 6), head=nn.Linear(6, 3)
    )
    return classified(model, vectors(5, 4, 6), vectors(5, 3, 6, seed=1), vectors(5, 4, 6, seed=2))


@case("property")
def skipped_by_data() -> Problem:
    """A layer that all examples of the first call pass and none of the second, at the same shapes."""
    model = Net(
        lambda m, x: m.head(m.a(x).tanh() if (x[:, 0] > 0).all() else x), a=nn.Linear(6, 6), head=nn.Linear(6, 3)
    )
    x = vectors(5, 6)
    x[:, 0] = x[:, 0].abs() + 0.1
    return classified(model, x, -x, x * 2)


@case("property")
def switched() -> Problem:
    """Two layers of the same shape in turns: what was established for the one holds for the other, or not at all."""

    def forward(m: Any, x: Tensor) -> Tensor:
        first = bool((x[:, 0] > 0).all())
        out: Tensor = m.head((m.a if first else m.b)(x).tanh())
        return out

    x = vectors(5, 6)
    x[:, 0] = x[:, 0].abs() + 0.1
    return classified(Net(forward, a=nn.Linear(6, 5), b=nn.Linear(6, 5), head=nn.Linear(5, 3)), x, -x, x * 2)


@case("property")
def experts() -> Problem:
    """Each example takes one of two layers by its own input, and a mask picks which."""
    model = Net(
        lambda m, x: m.head(torch.where(x[:, :1] > 0, m.a(x), m.b(x)).tanh()),
        a=nn.Linear(6, 5), b=nn.Linear(6, 5), head=nn.Linear(5, 3),
    )  # fmt: skip
    return classified(model, vectors(5, 6))


@case("mixture of experts: Shazeer et al. 2017, 1701.06538")
def experts_by_rows() -> Problem:
    """Each expert computes the rows of the batch that were sent to it, so that rows leave their places."""

    def forward(m: Any, x: Tensor) -> Tensor:
        out = x.new_zeros(len(x), 5)
        for expert, rows in ((m.a, x[:, 0] > 0), (m.b, x[:, 0] <= 0)):
            out = out.index_put((rows,), expert(x[rows]))
        logits: Tensor = m.head(out.tanh())
        return logits

    return classified(Net(forward, a=nn.Linear(6, 5), b=nn.Linear(6, 5), head=nn.Linear(5, 3)), vectors(5, 6))


@case("property")
def list_of_inputs() -> Problem:
    """A layer for each field of an example, and one shared by all of them."""
    model = Net(
        lambda m, x: m.head(sum(m.shared(layer(x[:, i])).tanh() for i, layer in enumerate(m.layers))),
        layers=nn.ModuleList(nn.Linear(6, 5) for _ in range(3)), shared=nn.Linear(5, 4), head=nn.Linear(4, 3),
    )  # fmt: skip
    batch = labelled(vectors(5, 3, 6))

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    return Problem(model, losses, (Call(batch),))
