"""Cells of figures, at full size and here: shipped figures fit, and what cannot be is refused before it is done."""

from dataclasses import replace

import pytest

from dpbench.errors import DpbenchError
from dpbench.papers import chosen, read, read_all
from dpbench.reportpath import find
from dpbench.reproducing.begun import Asked
from dpbench.reproducing.plan import command, measured, points, refuse_impossible, suite_of
from dpbench.sweep import names
from tests.reproducing.tiny import PAPER, SUITE, asked, written
from tests.test_papers import FIGURES


@pytest.mark.parametrize("figure", [figure for _, figure in FIGURES], ids=lambda figure: figure.id)
def test_shipped_figures_fit_their_suites_at_full_size_and_here(figure, tmp_path):
    found = points(figure, None)
    refuse_impossible(figure, found, Asked(figures=(), directory=tmp_path))
    assert found
    assert {p.full.implementation for p in found} <= set(names())
    for run in figure.run:
        left_out = [p for p in found if p.run is run and p.here is None]
        assert bool(left_out) == bool(run.here.left_out), "what is said to be left out is there"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def figures(paper=PAPER, suite=SUITE):
        written(tmp_path, paper, suite)
        return [figure for _, figure in chosen(read_all([tmp_path / "papers" / "mine.toml"]))]

    return figures


def test_sizes_and_what_is_left_out(here):
    found = points(here()[0], None)
    assert [(p.full.implementation, p.full.workload.batch, p.here and p.here.workload.batch) for p in found] == [
        ("nonprivate", 8, 8),
        ("bk", 8, 8),
        ("opacus", 8, 8),
        ("nonprivate", 16, 12),
        ("bk", 16, 12),
        ("opacus", 16, None),
    ]


def test_on_a_device_all_is_measured_at_full_size(here):
    figure = here()[0]
    found = points(figure, "cuda")
    assert all(p.here.workload == replace(p.full.workload, device="cuda") for p in found)
    assert command(figure.run[0], "cuda") == "dpbench run small --device cuda"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('{ "16" = 12 }', "[2, 3]", r"axes.batch is \[2, 3\], expected one value"),
        ('{ "16" = 12 }', "0", "axes.batch is 0, expected at least 1"),
        ("axes = { batch", "axes = { bacth", "axes.bacth is unknown, did you mean batch"),
        ('axes = { batch = { "16" = 12 } }', 'axes = { implementation = "bk" }', "axes.implementation is 'bk'"),
        ('axes = { batch = { "16" = 12 } }', 'memory = "much"', "memory is 'much', expected"),
        ("rounds = 1", "rounds = 0", "rounds is 0, expected at least 1"),
        ('left_out = "B=16 and', 'left_out = "and and', "cannot read -k"),
        ('suite = "small"', 'suite = "smal"', "unknown suite 'smal'. Did you mean small"),
        ("B = 8\n", "B = 9\n", "figure one and its suites do not fit:"),
    ],
)
def test_what_fits_nothing_is_refused(here, before, after, said):
    assert before in PAPER
    with pytest.raises(DpbenchError, match=said):
        points(here(PAPER.replace(before, after, 1))[0], None)


@pytest.mark.parametrize(
    ("given", "suite", "said"),
    [
        ({"device": "cuda:99"}, SUITE, "device cuda:99 is not there"),
        ({"card": "A1000"}, SUITE, "unknown card 'A1000'"),
        ({"card": "T4"}, SUITE.replace("threads = 1", 'precision = "bf16"'), "T4 has no bf16"),
        ({}, SUITE.replace("[8, 16]", '"max"'), "batch is 'max' on cpu, expected the memory"),
    ],
)
def test_what_is_not_there_is_refused(here, tmp_path, given, suite, said):
    here(
        PAPER.replace("B = 8\n", "").replace('axes = { batch = { "16" = 12 } }', "").replace('select = "B=8"', ""),
        suite,
    )
    ask = asked(tmp_path, "one", **given)
    with pytest.raises(DpbenchError, match=said):
        figure = ask.figures[0][1]
        refuse_impossible(figure, points(figure, ask.device), ask)


def test_what_is_not_run_needs_no_memory(here, tmp_path):
    paper = PAPER.replace("B = 8\n", "").replace('axes = { batch = { "16" = 12 } }', "")
    here(paper.replace('left_out = "B=16 and opacus"', 'left_out = "opacus"'), SUITE.replace("[8, 16]", '"max"'))
    ask = asked(tmp_path, "one", measured=False)
    figure = ask.figures[0][1]
    refuse_impossible(figure, points(figure, None), ask)


def test_runs_of_one_suite_have_names_of_their_own(here):
    run = '[[figure.run]]\nsuite = "small"\nselect = "B=8"\nquantities = ["memory"]\n'
    figure = here(f"{PAPER}\n{run}")[1]
    assert [suite_of(figure, run, None).name for run in figure.run] == ["two.1.small", "two.2.small"]


@pytest.mark.parametrize(
    ("quantities", "taken"),
    [
        (("flops",), []),
        (("memory",), ["traced", "memory"]),
        (("max_batch",), ["memory"]),
        (("throughput",), ["traced", "memory", "seconds"]),
    ],
)
def test_what_is_taken_of_a_cell(here, quantities, taken):
    assert list(measured(here()[0].run[0].model_copy(update={"quantities": quantities}))) == taken


def test_a_card_that_is_unknown_is_refused_also_where_nothing_is_predicted_for_it(tmp_path):
    ((paper, figure),) = chosen([read(find("papers/bu2023.toml"))], ["complexity"])
    wanted = Asked(figures=((paper, figure),), directory=tmp_path, card="FOO")
    with pytest.raises(DpbenchError, match="unknown card 'FOO'"):
        refuse_impossible(figure, [], wanted)
