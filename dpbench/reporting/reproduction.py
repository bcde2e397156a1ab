"""A reproduced figure in a terminal: published, predicted and measured, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration, percent, ratio, significant
from dpbench.reproduction import FAR, Number, Reproduced, Reproduction, Three, Value, scored, share

Of = Callable[[Value], Three]


def absolute(value: Value) -> Three:
    """The numbers."""
    return value.absolute


def relative(value: Value) -> Three:
    """Their ratios."""
    return value.ratio


@dataclass(frozen=True, slots=True)
class Shown:
    """One column of a reproduced quantity."""

    title: str
    of: Of
    number: Callable[[Value], Number] | None
    """What stands in it; None: how far predicted is from published."""
    measured: bool = False
    """Whether it is what was measured."""

    def text(self, value: Value) -> str:
        """A number, a ratio, a word, or a difference."""
        if self.number is None:
            return apart(self.of(value))
        return (number if self.of is absolute else shown)(self.number(value))


def columns(values: Sequence[Value]) -> list[Shown]:
    """Those that say something: of the numbers, then of the ratios."""
    published, predicted, measured = titles(values[0].quantity)
    every: list[Shown] = []
    for of in (absolute, relative):
        every += [
            Shown(published, of, lambda v, of=of: of(v).published),  # type: ignore[misc]
            Shown(predicted, of, lambda v, of=of: of(v).predicted),  # type: ignore[misc]
            Shown("off", of, None),
            Shown(measured, of, lambda v, of=of: of(v).measured, measured=True),  # type: ignore[misc]
        ]
    every.append(Shown("expected", relative, lambda v: v.expected_here))
    return [column for column in every if any(column.text(value) for value in values)]


def is_reduced(value: Value) -> bool:
    """Whether something of it was measured, and at a reduced size."""
    return bool(value.at) and bool(value.absolute.measured or value.ratio.measured)


def titles(quantity: str) -> tuple[str, str, str]:
    """What the three columns are of a quantity: FLOPs are not measured, but counted in two ways."""
    return ("published", "by formula", "traced") if quantity == "flops" else ("published", "predicted", "measured")


def spelt(quantity: str) -> str:
    """What a quantity is called."""
    return {"flops": "FLOPs", "max_batch": "largest batch"}.get(quantity, quantity)


def lines(figure: Reproduced) -> list[str]:
    """Heading, a table of each quantity, and what has to be said of them."""
    head = f"{figure.title} [{figure.id}]"
    where = f"printed: {figure.printed}; read: {figure.read}" if figure.printed else "not printed: ours"
    on = f"; predicted for {figure.card}" if figure.kind == "cost" else ""
    text = [head, f"  {where}{on}"]
    for quantity in dict.fromkeys(value.quantity for value in figure.values):
        own = [value for value in figure.values if value.quantity == quantity]
        text += ["", *(f"  {line}" for line in _table(own))]
    return [*text, "", *(f"  {said}" for said in notes(figure))]


def _table(values: Sequence[Value]) -> Iterator[str]:
    """Numbers, and right of a bar ratios, under the workload that they are of; a star: at a reduced size."""
    shown = columns(values)
    bar = sum(column.of is absolute for column in shown)
    quantity = f"{spelt(values[0].quantity)}, {values[0].unit}"

    star = "*" if any(map(is_reduced, values)) else ""

    def barred(cells: list[str], said: str = "|") -> list[str]:
        return [*cells[:bar], said, *cells[bar:]] if 0 < bar < len(shown) else cells

    heads = [column.title + (star if column.measured else "") for column in shown]
    body = [[f"  {named(value)}", *barred([column.text(value) for column in shown])] for value in values]
    first, *rest = aligned([[quantity, *barred(heads, "| ratio:")], *body])
    yield first
    row = None
    for value, line in zip(values, rest, strict=True):
        if value.row != row:
            row = value.row
            yield row
        yield line


def named(value: Value) -> str:
    """The implementation, and what it is compared with where that is not non-private training."""
    return value.implementation + (f" / {value.relative_to}" if value.relative_to not in ("", "nonprivate") else "")


def number(n: Number) -> str:
    """An absolute number, or its word."""
    if n.word:
        return n.word.partition(":")[0]
    if n.value is None:
        return ""
    return f"{n.value:.0f}" if n.value == int(n.value) and n.value < 1e6 else significant(n.value)


def shown(n: Number) -> str:
    """A ratio with its interval, or its word."""
    if n.word:
        return n.word.partition(":")[0]
    return "" if n.value is None else ratio(n.value, n.low, n.high)


def apart(three: Three) -> str:
    """``+12%``, or ``11x`` where it is over ten times; what words say of each other, in words."""
    off = three.off
    if off is None:
        return ""
    if off == float("inf"):
        return "printed OOM" if three.published.word == "oom" else "predicted OOM"
    if three.published.word and not off:
        return "both OOM" if three.published.word == "oom" else "holds"
    return f"{1 + off:.0f}x" if off > 9 else f"{off:+.0%}".replace("-0%", "+0%")


def notes(figure: Reproduced) -> list[str]:
    """What was measured at which size and left out, reasons, and shares."""
    return [*settings(figure), *_reasons(figure), *shares([figure])]


def settings(figure: Reproduced) -> list[str]:
    """What was measured at which size, and what was left out."""
    sizes = list(dict.fromkeys(value.at for value in figure.values if is_reduced(value)))
    more = f" and {len(sizes) - 2} more" if len(sizes) > 2 else ""
    reduced = [f"* measured at a reduced size: {'; '.join(sizes[:2])}{more}"] if sizes else []
    return [*reduced, *(f"left out: {said}" for said in figure.left_out)]


def _reasons(figure: Reproduced) -> Iterator[str]:
    """Each once, with the first of the numbers and ratios that it is for."""
    found: dict[tuple[str, str], list[str]] = {}
    for value in figure.values:
        for of, what in ((absolute, ""), (relative, "ratio of ")):
            if of(value).far:
                key = of(value).sure, of(value).reason
                found.setdefault(key, []).append(
                    f"{what}{spelt(value.quantity)} of {value.implementation}, {value.row}"
                )
    for (sure, reason), which in found.items():
        said = f"{reason} [{sure}]" if reason else "no reason is known"
        yield f"over {percent(FAR)} apart, {len(which)}x ({which[0]}{', ...' if which[1:] else ''}): {said}"


def shares(figures: Sequence[Reproduced]) -> list[str]:
    """How near predictions come to printed numbers, and to their ratios, by quantity; words and formulas apart."""
    costs = [value for figure in figures if figure.kind == "cost" for value in figure.values]
    found = []
    for quantity in dict.fromkeys(value.quantity for value in costs):
        own = [value for value in costs if value.quantity == quantity]
        near = {"ratios": share(scored(own, relative)), "numbers": share(scored(own, absolute))}
        some = [f"{s.within_10} and {s.within_25} of {s.compared} {what}" for what, s in near.items() if s.compared]
        if some:
            found.append(f"{spelt(quantity)}, predicted within 10 % and 25 %: {', and '.join(some)}")
    words = [three for value in costs if (three := value.absolute).published.word and three.off is not None]
    if words:
        found.append(f"out of memory and bounds: {sum(not three.off for three in words)} of {len(words)} as printed")
    if blurred := sum(of(value).blurred for value in costs for of in (absolute, relative)):
        found.append(f"not counted, as they could not be read to 10 %: {blurred} numbers and ratios")
    terms = [value for figure in figures if figure.kind == "complexity" for value in figure.values]
    if (s := share(scored(terms, absolute))).compared:
        found.append(f"terms: {s.within_10} of {s.compared} printed are what formulas give, within 10 %")
    return found


def why(figures: Sequence[Reproduced]) -> list[str]:
    """How many predictions are far from print, by how sure their reasons are."""
    threes = [three for f in figures for value in f.values for three in (value.absolute, value.ratio)]
    sure = Counter(three.sure or "without a reason" for three in threes if three.far)
    said = ", ".join(f"{count} {how}" for how, count in sure.most_common())
    return [f"{sure.total()} numbers and ratios are more than {percent(FAR)} apart; why: {said}"] if sure else []


def together(made: Reproduction) -> list[str]:
    """Over all figures: how near predictions come, why not nearer, and how long it took."""
    took = duration(sum(figure.seconds for figure in made.figures))
    return [*shares(made.figures), *why(made.figures), f"{len(made.figures)} of {len(made.asked)} figures, {took}"]
