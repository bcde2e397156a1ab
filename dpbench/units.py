"""Units: users, or whatever else the examples belong to, each of which is clipped as a whole."""

from __future__ import annotations

import torch
from torch import Tensor


class Units:
    """Which examples belong to which unit. A unit with examples has a *row*; rows are ordered by size.

    Units of one size are worked on together, so that none is padded to the size of the largest.
    """

    def __init__(self, unit: Tensor, device: torch.device) -> None:
        """``unit``: (B,) the number of each example's unit; read once, the only question to its device."""
        numbers: list[int] = unit.tolist()
        members: dict[int, list[int]] = {}
        for example, number in enumerate(numbers):
            members.setdefault(number, []).append(example)
        ordered = sorted(members, key=lambda number: len(members[number]))
        row = {number: k for k, number in enumerate(ordered)}
        self.members = [members[number] for number in ordered]
        """The examples of each row."""
        self.largest = max(map(len, self.members), default=0)
        """How many examples the largest unit has."""
        sizes = dict.fromkeys(map(len, self.members))
        self.by_size = [
            torch.tensor([m for m in self.members if len(m) == size], dtype=torch.int64, device=device)
            for size in sizes
        ]
        """For each size n, the examples (units, n) of the units of that size, in the order of the rows."""
        self._rows = torch.tensor([row[number] for number in numbers], dtype=torch.int64, device=device)
        self._numbers = torch.tensor(ordered, dtype=torch.int64, device=device)
        self._total = max(ordered, default=-1) + 1

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.members)

    def sum(self, samples: Tensor) -> Tensor:
        """Add up what the examples have, (B, ...), to what the rows have, (U, ...)."""
        return torch.cat([samples[examples].sum(1) for examples in self.by_size])

    def of_examples(self, rows: Tensor) -> Tensor:
        """Give each example what its row has: (U, ...) -> (B, ...)."""
        return rows[self._rows]

    def by_number(self, rows: Tensor) -> Tensor:
        """Put what the rows have, (U, ...), where the units' numbers say; zero where no example is."""
        return rows.new_zeros(self._total, *rows.shape[1:]).index_copy_(0, self._numbers, rows)
