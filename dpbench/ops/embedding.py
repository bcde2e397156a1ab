"""``F.embedding``: rows of a table, picked by ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dpbench.errors import Refused
from dpbench.facts import Facts
from dpbench.numerics import squared_norms, weighted
from dpbench.ops.call import Call
from dpbench.ops.kept import Kept
from dpbench.ops.use import Use


class Lookup(Use):
    """A table (V, d) read at ids (B, T): ``g_i`` adds ``ds_it`` to row ``id_it``."""

    ghostable: ClassVar[bool] = True

    def __init__(self, table: Tensor, ids: Tensor, padding_idx: int | None, what: str = "F.embedding") -> None:
        self.parameter = table
        self.padding_idx = None if padding_idx is None else padding_idx % table.shape[0]
        self._ids = Kept(ids, what)

    def joined(self, ds: Tensor, examples: Tensor) -> tuple[Use, Tensor]:
        """T is then n times as long."""
        return Lookup(self.parameter, self._ids.get()[examples], self.padding_idx), ds[examples]

    def pair(self, ds: Tensor) -> tuple[Tensor, Tensor]:
        """(ids, ds) as (B, T) and (B, T, d)."""
        ids = self._ids.get()
        return ids.flatten(1) if ids.ndim > 1 else ids[:, None], ds.reshape(ds.shape[0], -1, ds.shape[-1])

    def facts(self, ds: Tensor) -> Facts:
        """A matrix of one-hot rows: d is the number of rows V, p the embedding's width."""
        V, d = self.parameter.shape
        return Facts(rule="embedding", B=ds.shape[0], T=self.pair(ds)[0].shape[1], d=V, p=d)

    def instantiate(self, ds: Tensor) -> Tensor:
        """(B, V, d), mostly zeros."""
        ids, ds = self.pair(ds)
        B, V = ids.shape[0], self.parameter.shape[0]
        offset = torch.arange(B, device=ids.device)[:, None] * V
        g = ds.new_zeros(B * V, ds.shape[2]).index_add_(0, (ids + offset).flatten(), ds.flatten(0, 1))
        g = torch.unflatten(g, 0, (B, V))
        if self.padding_idx is not None:
            g[:, self.padding_idx] = 0
        return g

    def squared_ghost_norm(self, ds: Tensor) -> Tensor:
        """Add up the rows of equal ids, then the squared norms of the sums: O(B T d), no T x T product."""
        ids, ds = self.pair(ds)
        B, T = ids.shape
        if T == 1:
            square = squared_norms(ds)
            return square if self.padding_idx is None else square * (ids[:, 0] != self.padding_idx)
        place = places_of_equal_ids(ids).flatten()
        sums = ds.new_zeros(B * T, ds.shape[2]).index_add_(0, place, ds.flatten(0, 1))
        squares = squared_norms(sums)
        if self.padding_idx is not None:
            padding = (ids == self.padding_idx).flatten().to(squares.dtype)
            squares = squares * (torch.zeros_like(squares).index_add_(0, place, padding) == 0)
        return torch.unflatten(squares, 0, (B, T)).sum(1)

    def weighted_sum(self, ds: Tensor, c: Tensor) -> Tensor:
        """The library's own embedding gradient of the weighted ``ds``."""
        ids, ds = self.pair(ds)
        padding = -1 if self.padding_idx is None else self.padding_idx
        V = self.parameter.shape[0]
        gradient: Tensor = torch.ops.aten.embedding_dense_backward(weighted(ds, c), ids, V, padding, False)
        return gradient


def places_of_equal_ids(ids: Tensor) -> Tensor:
    """(B, T) places in ``range(B T)``, the same for equal ids of one example and for no others.

    Sorted rather than ``unique``, whose shape depends on the data.
    """
    B, T = ids.shape
    ordered, order = ids.sort(dim=1)
    rank = torch.zeros_like(ordered)
    rank[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(1)
    rank += torch.arange(B, device=ids.device)[:, None] * T
    return torch.empty_like(rank).scatter_(1, order, rank)


class Embedding:
    """``F.embedding(input, weight, padding_idx)``."""

    functions: ClassVar[Sequence[Any]] = (F.embedding,)
    signature: ClassVar[str] = (
        "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False"
    )

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """The table; options that change the gradient or the table itself are refused by name."""
        table = call.arguments["weight"]
        for option in ("max_norm", "scale_grad_by_freq", "sparse"):
            if call.arguments[option]:
                raise Refused(
                    f"F.embedding with {option} is not a per-example function of its table or gives no dense "
                    f"gradient. Build the embedding without {option}."
                )
        if table.ndim != 2 or "input" not in call.layouts:
            return None
        return [Lookup(table, call.batch_first("input"), call.arguments["padding_idx"])]


class Index:
    """``table[ids]`` and ``index_select`` along the first axis of a table."""

    functions: ClassVar[Sequence[Any]] = (Tensor.__getitem__,)
    signature: ClassVar[str] = "input, index"

    @staticmethod
    def uses(call: Call) -> list[Use] | None:
        """Indexing by one integer tensor is an embedding."""
        table, ids = call.arguments["input"], call.arguments["index"]
        if not isinstance(ids, Tensor) or ids.dtype != torch.long or table.ndim != 2 or "index" not in call.layouts:
            return None
        # Negative ids count from the end, which equal-ids sums must not tell apart.
        return [Lookup(table, call.batch_first("index") % table.shape[0], None, "an index")]
