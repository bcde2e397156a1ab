"""Batches: their sizes, their order in memory, masks and units, and one after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpbench.cases.case import case
from dpbench.cases.problem import Call, Net, Problem, classified, cross_entropy, integers, labelled, vectors


def mlp() -> nn.Module:
    """Two layers on vectors of six."""
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def sequences() -> nn.Module:
    """Two layers, a norm and a bare parameter on sequences (B, T, 6) of any length."""
    return Net(
        lambda m, x: m.head(m.norm(m.a(x) * m.scale).tanh().mean(1)),
        a=nn.Linear(6, 5), scale=torch.rand(5), norm=nn.LayerNorm(5), head=nn.Linear(5, 3),
    )  # fmt: skip


def called(*calls: Call) -> Problem:
    """The sequence model on these calls, which may hold masks and units."""
    return Problem(sequences(), cross_entropy, calls)


@case("property")
def one() -> Problem:
    """One example in every batch."""
    return classified(sequences(), vectors(1, 4, 6), vectors(1, 4, 6, seed=1))


@case("property")
def as_many_as_positions() -> Problem:
    """B = T = d = 6."""
    return classified(sequences(), vectors(6, 6, 6))


@case("opacus issue 161")
def empty() -> Problem:
    """An empty batch, as Poisson sampling gives: no norms, and a sum of zero."""
    return classified(mlp(), vectors(0, 6), max_norm=1.0, norms=())


@case("opacus issue 522")
def empty_between() -> Problem:
    """An empty batch between two others, of a sequence model."""
    return classified(sequences(), vectors(5, 4, 6), vectors(0, 4, 6), vectors(3, 4, 6, seed=1))


@case("opacus issue 522")
def empty_at_first() -> Problem:
    """An empty batch as the first of all: nothing can be learned from it about the next."""
    return classified(sequences(), vectors(0, 4, 6), vectors(5, 4, 6), max_norm=0.3)


@case("opacus pull request 417")
def two_in_a_row() -> Problem:
    """Two batches one after the other: the second's gradients are not added to the first's."""
    return classified(mlp(), vectors(5, 6), vectors(5, 6, seed=1))


@case("property")
def same_again() -> Problem:
    """The same tensors three times: the same result each time."""
    x = vectors(5, 4, 6)
    return classified(sequences(), x, x, x)


@case("property")
def poisson() -> Problem:
    """Batches of several sizes and lengths, as Poisson sampling and padding give."""
    shapes = (5, 4), (1, 2), (7, 3), (2, 4), (3, 1), (4, 4)
    return classified(sequences(), *(vectors(B, T, 6, seed=i) for i, (B, T) in enumerate(shapes)))


@case("property")
def growing() -> Problem:
    """One example at first and then more: what is broadcast in the first is not in the others."""
    return classified(sequences(), *(vectors(B, 3, 6, seed=B) for B in (1, 2, 3, 5)))


@case("property")
def mask() -> Problem:
    """Rows that only pad the batch contribute nothing, and are not clipped either."""
    masked = torch.tensor([True, True, False, True, False])
    return called(Call(labelled(vectors(5, 4, 6)), mask=masked), Call(labelled(vectors(5, 4, 6, seed=1))))


@case("property")
def mask_of_all() -> Problem:
    """A batch that is nothing but padding has a sum of zero."""
    batch = labelled(vectors(5, 4, 6))
    return called(Call(batch), Call(batch, mask=torch.zeros(5, dtype=torch.bool)))


@case("property")
def mask_of_none() -> Problem:
    """A mask that is true everywhere changes nothing."""
    return called(Call(labelled(vectors(5, 4, 6)), mask=torch.ones(5, dtype=torch.bool)))


@case("user-level privacy: McMahan et al. 2017, 1710.06963")
def units() -> Problem:
    """Several examples of one user, in any order: they are summed before the norm."""
    return called(Call(labelled(vectors(5, 4, 6)), unit=torch.tensor([1, 0, 1, 2, 0])))


@case("property")
def one_unit() -> Problem:
    """All examples are one user's: one norm, of the plain gradient."""
    return called(Call(labelled(vectors(5, 4, 6)), unit=torch.zeros(5, dtype=torch.long)))


@case("property")
def unit_for_each() -> Problem:
    """Each example is a user of its own, in another order: the norms are in the users' order."""
    return called(Call(labelled(vectors(5, 4, 6)), unit=torch.tensor([3, 0, 4, 1, 2])))


@case("property")
def units_that_are_absent() -> Problem:
    """Numbers of users that have no example in this batch: their norms are zero."""
    call = Call(labelled(vectors(5, 4, 6)), unit=torch.tensor([4, 1, 4, 1, 6]))
    return Problem(sequences(), cross_entropy, (call,), max_norm=1.5)


@case("property")
def units_that_cancel() -> Problem:
    """Two examples of one user whose gradients cancel: the user's gradient is zero, and each example's is not."""
    model = Net(lambda m, x: x @ m.w, w=torch.ones(2))

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return out

    x = torch.tensor([[3.0, 4.0], [-3.0, -4.0], [0.0, 2.0], [0.0, 1.0]])
    call = Call({"x": x}, unit=torch.tensor([0, 0, 1, 2]))
    return Problem(model, losses, (call,), max_norm=1.5, norms=(0.0, 2.0, 1.0))


@case("property")
def mask_and_units() -> Problem:
    """Users some of whose rows are padding, and one who has nothing else."""
    unit, masked = torch.tensor([0, 1, 0, 2, 1]), torch.tensor([True, True, False, False, True])
    return called(Call(labelled(vectors(5, 4, 6)), unit=unit, mask=masked))


@case("property")
def duplicates() -> Problem:
    """Some examples twice in the batch: they are two examples."""
    return classified(sequences(), vectors(3, 4, 6)[torch.tensor([0, 1, 0, 2, 2])])


@case("property")
def all_the_same() -> Problem:
    """One example five times: nothing in the batch tells the examples apart."""
    x = vectors(1, 4, 6).repeat(5, 1, 1)
    return Problem(sequences(), cross_entropy, (Call({"x": x, "y": torch.ones(5, dtype=torch.long)}),))


@case("property")
def zeros() -> Problem:
    """A batch of zeros, then one that is not: what looked alike on the first differs on the second."""
    return classified(sequences(), torch.zeros(5, 4, 6), vectors(5, 4, 6))


@case("property")
def not_finite() -> Problem:
    """An infinite example between two good batches: it has to be seen, and nothing of it may stay."""
    x = vectors(5, 6, seed=2)
    x[2, 0] = float("inf")
    return classified(mlp(), vectors(5, 6), x, vectors(5, 6, seed=1), max_norm=0.7)


@case("property")
def scales() -> Problem:
    """Examples from 1e-6 to 1e6: the small ones' gradients are not the large ones' rounding."""
    x = vectors(5, 6) * torch.tensor([1e-6, 1e-3, 1.0, 1e3, 1e6])[:, None]

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out: Tensor = model(batch["x"])
        return out.sum(1)

    return Problem(nn.Linear(6, 2, False), losses, (Call({"x": x}),))


@case("property")
def not_contiguous() -> Problem:
    """Batches that are views: transposed, with steps, expanded."""
    views = vectors(6, 4, 5).permute(2, 1, 0), vectors(10, 8, 6)[::2, ::2], vectors(5, 1, 6).expand(-1, 4, -1)
    return classified(sequences(), *views)


@case("property")
def channels_last() -> Problem:
    """Images in the memory format channels_last."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3))
    return classified(model, vectors(5, 3, 5, 4).contiguous(memory_format=torch.channels_last))


@case("property")
def sequence_first() -> Problem:
    """The model turns the batch to (T, B, d), with B = T, and back at the end."""

    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.norm(m.a(x.transpose(0, 1)) + m.position[: x.shape[1], None])
        logits: Tensor = m.head(x.tanh()).mean(0)
        return logits

    parts = {"a": nn.Linear(6, 5), "norm": nn.LayerNorm(5), "position": torch.randn(7, 5), "head": nn.Linear(5, 3)}
    return classified(Net(forward, **parts), vectors(5, 5, 6), vectors(5, 3, 6, seed=1))


@case("property")
def several_tensors() -> Problem:
    """A dict of numbers, ids, a mask of truth values and numbers that nobody reads."""

    def losses(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        out = model(batch["x"], batch["ids"], batch["valid"])
        return F.cross_entropy(out, batch["y"], reduction="none")

    def forward(m: Any, x: Tensor, ids: Tensor, valid: Tensor) -> Tensor:
        h = (m.a(x) + m.e(ids)).tanh() * valid[:, :, None]
        logits: Tensor = m.head(h.sum(1) / valid.sum(1, keepdim=True).clamp(min=1))
        return logits

    batch = labelled(vectors(5, 4, 6)) | {"ids": integers(9, 5, 4), "index": torch.arange(100, 105)}
    batch["valid"] = torch.arange(4)[None] < torch.tensor([4, 1, 0, 2, 4])[:, None]
    parts = {"a": nn.Linear(6, 5), "e": nn.Embedding(9, 5), "head": nn.Linear(5, 3)}
    return Problem(Net(forward, **parts), losses, (Call(batch),))
