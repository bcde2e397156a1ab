"""What cells cost on a card at full size: their real code, traced at two batches on shapes without memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from dpbench.cards import Card
from dpbench.complexity.line import Line
from dpbench.complexity.maxbatch import MOST, worth_running
from dpbench.complexity.roofline import seconds
from dpbench.complexity.survey import Found, Task, survey
from dpbench.paper import Quantity
from dpbench.records import MAX, Cell
from dpbench.reproduction import OOM, Number


@dataclass(frozen=True, slots=True)
class Predicted:
    """The line of each cell, on one card."""

    card: Card
    found: Mapping[Cell, Found]
    """By cells of batch 1."""

    def of(self, cell: Cell, quantity: Quantity) -> Number:
        """One quantity of one cell, or the word for why there is none."""
        found = self.found[_key(cell)]
        if found.line is None:
            return Number(word=f"refused: {found.reason}")
        return _OF[quantity](cell, found.line, self.card)


def predict(
    cells: Iterable[Cell], card: Card, pool: Executor | None, known: MutableMapping[Task, Found]
) -> Generator[Found, None, Predicted]:
    """Trace what ``cells`` need, each workload and implementation once; each is given as it comes.

    What is ``known``, from other figures say, is not traced; what is traced is added to it.
    """
    wanted = list(dict.fromkeys(map(_key, cells)))
    tasks = {}
    for cell in wanted:
        most = worth_running(cell.implementation, MOST)
        tasks[Task(cell.workload.label(), cell.workload, (cell.implementation,), card.capacity, most)] = cell
    for one in survey([task for task in tasks if task not in known], pool):
        known[one.task] = one
        yield one
    return Predicted(card, {cell: known[task] for task, cell in tasks.items()})


def _key(cell: Cell) -> Cell:
    return Cell(cell.implementation, replace(cell.workload, batch=1))


def _largest(cell: Cell, line: Line, card: Card) -> Number:
    batch = _most(cell, line, card)
    return Number(float(batch)) if batch else OOM


def _most(cell: Cell, line: Line, card: Card) -> int:
    return line.largest(card.capacity, worth_running(cell.implementation, MOST))


def _batch(cell: Cell, line: Line, card: Card) -> int:
    """Its own, or the largest that fits; 0 where none does."""
    return _most(cell, line, card) if cell.workload.batch == MAX else cell.workload.physical


def _throughput(cell: Cell, line: Line, card: Card) -> Number:
    """Examples per second at its batch."""
    batch = _batch(cell, line, card)
    if not batch or line.need(batch) > card.capacity:
        return OOM
    return Number(batch / seconds(line.at(batch), card, cell.workload.precision).expected)


def _memory(cell: Cell, line: Line, card: Card) -> Number:
    """GB that the tensors of a step take, with what is there before it."""
    batch = _batch(cell, line, card)
    return Number(line.need(batch) / 1e9) if batch else OOM


def _flops(cell: Cell, line: Line, card: Card) -> Number:
    return Number(float(line.at(cell.workload.physical).total))


_OF: dict[Quantity, Callable[[Cell, Line, Card], Number]] = {
    "throughput": _throughput,
    "max_batch": _largest,
    "memory": _memory,
    "flops": _flops,
}
