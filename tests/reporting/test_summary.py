import io
from dataclasses import replace

from rich.console import Console

from dpbench.records import Outcome, Round
from dpbench.reporting import summary
from dpbench.rows import rows
from dpbench.state import State
from tests.records_for_tests import PARTIAL, record, sweep, workload

SIX = [[0.5]] * 6
RECORDS = [
    record("nonprivate", seconds=SIX, memory=1e9, tokens=64),
    record("bk", seconds=[[0.625]] * 6, memory=1.5e9, tokens=64),
    record("opacus", outcome=Outcome.OUT_OF_MEMORY, reason="limit of 5 GB"),
    record("vmap", outcome=Outcome.WRONG, reason="norms differ", error=0.13),
]


def test_a_workload_is_a_block_of_lines():
    assert summary.lines(rows(RECORDS)) == [
        "transformers:gpt2 B=8  (124 M parameters)",
        "  implementation    error  examples/s  tokens/s             ratio   memory  ratio",
        "  nonprivate      1.0e-15        16.0      1020              1.00  1.00 GB   1.00",
        "  bk              1.0e-15        12.8       819  0.80 (0.80-0.80)  1.50 GB   1.50",
        "  opacus          1.0e-15     OOM [1]",
        "  vmap            1.3e-01   wrong [2]",
        "",
        "[1] limit of 5 GB",
        "[2] norms differ",
        "ratio: to nonprivate on the same workload; error: of the gradient, to the per-example loop",
        "",
        "4 cells: 2 ok, 1 wrong, 1 out of memory",
    ]


def test_where_each_has_a_batch_of_its_own_it_is_a_column():
    most = workload(batch="max")
    made = [replace(record(n, most, tokens=None, seconds=SIX), largest=b) for n, b in (("nonprivate", 40), ("bk", 39))]
    refused = record("vmap", most, Outcome.REFUSED, "not to my taste")
    text = summary.lines(rows([*made, refused]))
    assert text[0].startswith("transformers:gpt2 B=max")
    assert [line.split()[:2] for line in text[1:5]] == [
        ["implementation", "B"], ["nonprivate", "40"], ["bk", "39"], ["vmap", "-"]
    ]  # fmt: skip
    assert any(line.startswith("B=max: each at the largest physical batch that fits") for line in text)
    assert not any(line.startswith("B=max") for line in summary.lines(rows(RECORDS)))


def test_models_without_tokens_have_no_such_column():
    made, _ = summary.blocks(rows([record(tokens=None)]))
    assert "tokens/s" not in made[0].head
    assert len(made[0].head) == len(made[0].lines[0])


def test_too_few_rounds_are_said_with_the_remedy():
    made, notes = summary.blocks(rows([record()]))
    brackets = "; in brackets the smallest and the largest ratio of a round"
    assert notes == [f"3 rounds: too few for intervals, which need 6 (--rounds 6){brackets}"]
    assert len(made) == 1


def test_without_an_interval_the_range_of_the_rounds_is_shown():
    base = record("nonprivate", seconds=[[0.5], [0.5], [0.5]])
    slow = record("bk", seconds=[[0.5], [0.625], [1.0]])
    assert "0.74 [0.50-1.00]" in summary.lines(rows([base, slow]))[3]


def test_timings_that_scatter_are_said():
    calm = record("bk", seconds=[[0.5, 0.5, 0.51, 0.5]])
    wild = record("bk", seconds=[[0.5, 0.9, 0.5, 2.0]])
    assert not any("scatter" in note for note in summary.blocks(rows([calm]))[1])
    assert any("the quartiles of one cell by 96% of its median" in note for note in summary.blocks(rows([wild]))[1])


def test_the_terminal_shows_the_same_words():
    out = io.StringIO()
    every = rows(sweep())
    Console(file=out, width=140).print(summary.renderable(every))
    shown = set(out.getvalue().split())
    assert {word for line in summary.lines(every) for word in line.split()} <= shown


def test_a_workload_of_two_files_is_two_blocks():
    one, other = (rows([record(on=workload())], file=f) for f in "ab")
    assert len(summary.blocks([*one, *other])[0]) == 2


def test_a_figure_without_all_parameters_says_so_beside_it_and_its_ratios_are_marked():
    made = [RECORDS[0], replace(RECORDS[1], coverage=PARTIAL)]
    text = summary.lines(rows(made))
    assert text[3].split("  ")[-1] == "1.50 [1]"
    assert "12.8 [1] [2]" in text[3]
    assert "0.80 (0.80-0.80) [1]" in text[3]
    assert text[5:7] == [
        "[1] 12 % of the parameters got no gradient: cls_token, pos_embed",
        "[2] 3.0 % of the parameters by the generic rule: slow",
    ]
    assert any("a ratio marked so is no plain comparison" in line for line in text)


def test_a_wrong_gradient_says_which_parameters_got_none():
    wrong = record("vmap", outcome=Outcome.WRONG, reason="cls_token differs", coverage=PARTIAL)
    assert "wrong [1] [2]" in summary.lines(rows([wrong]))[2]


def test_what_disturbed_a_measurement_is_said_and_what_did_not_is_not():
    def noted(**round_):
        made = record("bk", seconds=[[0.5]] * 6)
        rounds = tuple(Round(**{"started": 0.0, "warm_up": 4, "settled": True, **round_}) for _ in range(6))
        return " ".join(summary.blocks(rows([replace(made, rounds=rounds)]))[1])

    quiet = noted(state=State(others=0.05))
    assert not any(word in quiet for word in ("clock", "warm-up", "other processes"))
    assert "held down in 6 rounds" in noted(state=State(throttled=("too hot",)))
    assert "--budget gives it longer" in noted(settled=False)
    assert "other processes took 45%" in noted(state=State(others=0.45))
