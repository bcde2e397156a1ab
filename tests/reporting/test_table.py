from dataclasses import replace

import pytest

from dpbench import results
from dpbench.errors import DpbenchError
from dpbench.records import Outcome
from dpbench.reporting.remarks import remarks
from dpbench.reporting.table import VALUES, build
from dpbench.rows import rows
from tests.records_for_tests import PARTIAL, record, sweep, workload, write

SMALL = [
    record("bk", workload(batch=8), seconds=[[1.0]], memory=4e9),
    record("nonprivate", workload(batch=8), seconds=[[0.5]], memory=2e9),
    record("opacus", workload(batch=8), Outcome.OUT_OF_MEMORY, "limit of 5 GB"),
    record("ghostclip", workload(batch=8), Outcome.REFUSED, "no\n  groups"),
    record("vmap", workload(batch=8), Outcome.WRONG, "off by 0.1"),
    record("bk", workload(batch=16), Outcome.OUT_OF_MEMORY, "limit of 5 GB"),
    record("nonprivate", workload(batch=16), seconds=[[1.0]], memory=2e9),
    record("opacus", workload(batch=16), Outcome.TIMED_OUT, ""),
    record("ghostclip", workload(batch=16), Outcome.FAILED, "RuntimeError"),
]


@pytest.fixture
def small(tmp_path):
    return [results.read(write(tmp_path, SMALL))]


def test_figures_and_words_stand_side_by_side(small):
    table = build(small)
    assert table.columns == ("nonprivate", "vmap", "opacus", "ghostclip", "bk")
    assert table.lines == (
        (("transformers:gpt2", "8"), (16.0, "wrong", "OOM", "refused", 8.0)),
        (("transformers:gpt2", "16"), (16.0, "", "timed out", "failed", "OOM")),
    )


def test_the_largest_batches_are_a_table_and_their_steps_are_not_compared(tmp_path):
    def built(value, relative=None, **axes):
        most = workload(batch="max", **axes)
        found = [replace(record(n, most, seconds=[[1.0]]), largest=b) for n, b in (("nonprivate", 40), ("bk", 20))]
        directory = tmp_path / f"{value}-{relative}-{axes}"
        return build([results.read(write(directory, found))], value=value, relative_to=relative).lines[0][1]

    assert built("batch") == (40, 20)
    assert built("throughput", "nonprivate") == (1.0, 0.5)
    assert built("seconds", "nonprivate") == ("-", "-")
    assert built("seconds", "nonprivate", logical_batch=256) == (1.0, 1.0)


def test_reasons_are_footnotes_once_each(small):
    table = build(small)
    assert table.footnotes == (
        "vmap: off by 0.1",
        "opacus, bk: limit of 5 GB",
        "ghostclip: no groups",
        "ghostclip: RuntimeError",
    )
    assert table.marks == {(0, 1): 1, (0, 2): 2, (0, 3): 3, (1, 3): 4, (1, 4): 2}


@pytest.mark.parametrize(
    ("value", "relative", "expected", "caption"),
    [
        ("throughput", None, 8.0, "throughput, examples/s (higher is better)"),
        ("tokens", None, 8.0 * 128, "throughput, tokens/s (higher is better)"),
        ("seconds", None, 1000.0, "time per step, ms (lower is better)"),
        ("memory", None, 4.0, "peak memory above parameters and batch, GB (lower is better)"),
        ("process", None, 5.0, "peak memory of the process, GB (lower is better)"),
        ("error", None, 1e-15, "relative error of the gradient (lower is better)"),
        ("coverage", None, 1.0, "parameters trained / asked to be trained (higher is better)"),
        ("ghost", None, 123 / 124, "share of parameters with ghost norms (higher is better)"),
        ("generic", None, 0.0, "by the generic rule, which is slow (lower is better)"),
        ("throughput", "nonprivate", 0.5, "throughput, ratio to nonprivate (higher is better)"),
        ("seconds", "nonprivate", 2.0, "time per step, ratio to nonprivate (lower is better)"),
        ("memory", "nonprivate", 2.0, "parameters and batch, ratio to nonprivate (lower is better)"),
        ("throughput", "bk", 1.0, "ratio to bk"),
    ],
)
def test_a_value_has_its_unit_and_its_direction(small, value, relative, expected, caption):
    table = build(small, value=value, relative_to=relative)
    assert table.lines[0][1][-1] == pytest.approx(expected)
    assert caption in table.caption


def test_axes_go_where_they_are_asked_for(small):
    table = build(small, ["implementation"], ["batch"])
    assert (table.keys, table.columns) == (("implementation",), ("B=8", "B=16"))
    assert table.lines[0] == (("nonprivate",), (16.0, 16.0))


def test_the_default_rows_are_all_axes_that_vary(tmp_path):
    table = build([results.read(write(tmp_path, sweep(1)))])
    assert table.keys == ("model", "B", "T")
    assert len(table.lines) == 28


def test_what_does_not_vary_is_in_the_caption(small):
    assert build(small, ["batch"]).caption.endswith("; model transformers:gpt2, precision fp32, device cpu")


def test_two_files_are_told_apart(small, tmp_path):
    again = results.read(write(tmp_path, SMALL))
    assert build([*small, again]).keys == ("model", "B", "file")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"by_row": ["model"]},
            r"several records fall into one cell .* is batch: add it to --rows or --cols",
        ),
        ({"by_row": ["bach"]}, r"unknown axis 'bach'. Did you mean batch"),
        ({"value": "memroy"}, r"unknown value 'memroy'. Did you mean memory"),
        (
            {"relative_to": "nonprivat"},
            r"unknown implementation to compare with 'nonprivat'. Did you mean nonprivate",
        ),
        (
            {"value": "process", "relative_to": "bk"},
            r"process cannot be given relative to bk, expected one of throughput",
        ),
    ],
)
def test_mistakes_are_named(small, options, message):
    with pytest.raises(DpbenchError, match=message):
        build(small, **options)


def test_every_value_has_a_direction():
    assert {v.better for v in VALUES.values()} == {"higher", "lower"}


def test_a_figure_without_all_parameters_is_no_number_and_has_a_footnote(tmp_path):
    made = [results.read(write(tmp_path, [record("nonprivate"), record("bk", coverage=PARTIAL)]))]
    notes = (f"bk: {'; '.join(remarks(rows([record(coverage=PARTIAL)])[0]))}",)
    for relative, expected in ((None, (16.0, "16.0 (88 % trained)")), ("nonprivate", (1.0, "1.00 (88 % trained)"))):
        table = build(made, relative_to=relative)
        assert (table.lines[0][1], table.footnotes, table.marks) == (expected, notes, {(0, 1): 1})
    assert build(made, value="coverage").lines[0][1] == (1.0, 0.88)
