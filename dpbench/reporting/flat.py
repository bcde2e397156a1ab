"""All that is known of every cell as one table of CSV, for spreadsheets and whatever reads no JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dpbench.results import Results
from dpbench.rows import COLUMNS, rows


def comma_separated(files: Sequence[Results]) -> str:
    """A line for each record, with the columns of :data:`dpbench.rows.COLUMNS`, in the order of files and records.

    Numbers have all their digits; what is not known is empty.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.flat() for results in files for row in rows(results))
    return out.getvalue()
