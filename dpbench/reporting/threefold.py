"""A reproduced figure in a terminal: published, predicted and measured, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from dpbench.reporting.columns import aligned
from dpbench.reporting.numbers import duration, percent, ratio, significant
from dpbench.reproduction import FAR, Number, Reproduced, Reproduction, Three, Value, share


def lines(figure: Reproduced) -> list[str]:
    """Heading, a table, and what has to be said of it."""
    head = f"{figure.title} [{figure.id}]"
    where = f"printed: {figure.printed}; read: {figure.read}" if figure.printed else "not printed: ours"
    on = f"; predicted for {figure.card}" if figure.kind == "cost" else ""
    text = [head, f"  {where}{on}"]
    for quantity in dict.fromkeys(value.quantity for value in figure.values):
        own = [value for value in figure.values if value.quantity == quantity]
        text += ["", *(f"  {line}" for line in _table(own))]
    text += ["", *(f"  {said}" for said in notes(figure))]
    return text


def _table(values: Sequence[Value]) -> list[str]:
    titles = [f"{values[0].quantity.replace('_', ' ')}, {values[0].unit}", "published", "predicted", "measured"]
    relative = any(v.ratio != Three() for v in values)
    if relative:
        titles += ["| ratio: published", "predicted", "off", "measured", "expected"]
    else:
        titles += ["off"]
    body: list[list[str]] = []
    row = ""
    for value in values:
        if value.row != row:
            row = value.row
            body.append([row, *[""] * (len(titles) - 1)])
        cells = [f"  {named(value)}", *map(number, _columns(value.absolute))]
        if relative:
            expected = shown(value.expected_here)
            three = value.ratio
            cells += [shown(three.published), shown(three.predicted), apart(three.off)]
            cells += [shown(three.measured), expected]
        else:
            cells += [apart(value.absolute.off)]
        body.append(cells)
    return aligned([titles, *body])


def named(value: Value) -> str:
    """The implementation, and what it is compared with where that is not non-private training."""
    return value.implementation + (f" / {value.relative_to}" if value.relative_to not in ("", "nonprivate") else "")


def _columns(three: Three) -> tuple[Number, Number, Number]:
    return three.published, three.predicted, three.measured


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


def apart(off: float | None) -> str:
    """``+12 %``."""
    if off is None:
        return ""
    return "one OOM" if off == float("inf") else f"{off:+.0%}"


def notes(figure: Reproduced) -> list[str]:
    """What was measured at which size, what was left out, reasons, and shares."""
    found = []
    sizes = list(dict.fromkeys(value.at for value in figure.values if value.at))
    if sizes:
        more = f" and {len(sizes) - 2} more" if len(sizes) > 2 else ""
        found.append(f"measured at a reduced size: {'; '.join(sizes[:2])}{more}")
    found += [f"left out: {said}" for said in figure.left_out]
    reasons: dict[tuple[str, str], list[str]] = {}
    for value in figure.values:
        if value.far:
            reasons.setdefault((value.sure, value.reason), []).append(f"{value.implementation} {value.row}")
    for (sure, reason), which in reasons.items():
        said = f"{reason} [{sure}]" if reason else "no reason is known"
        found.append(
            f"over {percent(FAR)} apart, {len(which)}x ({which[0]}{', ...' if len(which) > 1 else ''}): {said}"
        )
    return [*found, *shares(figure.values)]


def shares(values: Sequence[Value]) -> list[str]:
    """How near predictions come to published numbers, and to their ratios."""
    differences = {
        "published numbers": [value.absolute.off for value in values],
        "published ratios": [value.ratio.off for value in values],
    }
    return [
        f"of {s.compared} {what} {s.within_10} are predicted within 10 %, {s.within_25} within 25 %"
        for what, some in differences.items()
        if (s := share(some)).compared
    ]


def together(made: Reproduction) -> list[str]:
    """Over all figures: how near predictions come, and how long it took."""
    values = [value for figure in made.figures for value in figure.values]
    lines = shares(values)
    unexplained = sum(v.far and not v.reason for v in values)
    lines.append(
        f"{sum(v.far for v in values)} values are more than {percent(FAR)} apart, {unexplained} without a reason"
    )
    lines.append(f"{len(made.figures)} of {len(made.asked)} figures, {duration(sum(f.seconds for f in made.figures))}")
    return lines
