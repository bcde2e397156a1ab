import pytest

from dpbench.errors import DpbenchError
from dpbench.records import Cell
from dpbench.rules import Limits, Rules, rules
from tests.records_for_tests import workload

BK8, BK16, OPACUS = Cell("bk", workload(batch=8)), Cell("bk", workload(batch=16)), Cell("opacus", workload(batch=8))


def written(tmp_path, text):
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    return rules(path)


def table(tmp_path, text):
    return written(tmp_path, f"[tool.dpbench.gate]\n{text}")


@pytest.mark.parametrize(
    "text", ["", "[tool.other]\nx = 1", "tool = 3", "[tool]\ndpbench = 'x'", "[tool.dpbench.gate]"]
)
def test_without_a_table_the_usual_rules_hold(tmp_path, text):
    assert written(tmp_path, text) == Rules() == rules(tmp_path / "missing.toml")


def test_what_is_counted_may_not_grow_and_what_is_measured_hardly():
    limits = {q: Rules().limit(BK8, q) for q in Limits.model_fields}
    assert limits == {"seconds": 0.03, "memory": 0.02, "flops": 0.0, "bytes": 0.0, "peak": 0.0}
    assert (Rules().min_rounds, Rules().rounds, Rules().on_inconclusive) == (6, 20, "warn")


def test_the_last_selection_that_matches_and_has_the_quantity_counts(tmp_path):
    found = table(
        tmp_path,
        """
allow.memory = 0.05
allow.flops = 0
[[tool.dpbench.gate.selection]]
select = "bk"
seconds = 0.10
memory = 0.20
[[tool.dpbench.gate.selection]]
select = "B=16"
seconds = 0.5
""",
    )
    assert [found.limit(cell, "seconds") for cell in (BK8, BK16, OPACUS)] == [0.10, 0.5, 0.03]
    assert [found.limit(cell, "memory") for cell in (BK8, BK16, OPACUS)] == [0.20, 0.20, 0.05]
    assert found.limit(BK16, "flops") == 0.0


def test_one_suite_needs_no_list(tmp_path):
    assert table(tmp_path, 'suite = "smoke"').suite == ["smoke"]
    assert table(tmp_path, 'suite = ["smoke", "text"]\nfail_on = "faster"').fail_on == ["faster"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suite = 3", "suite is 3, expected a valid list"),
        ("suite = []", "suite is [], expected"),
        ("suite = [3]", "suite[0] is 3, expected a valid string"),
        ("rounds = 0", "rounds is 0, expected at least 1"),
        ("rounds = 2.5", "rounds is 2.5, expected a valid integer"),
        ("min_rounds = true", "min_rounds is True, expected a valid integer"),
        ("min_effect = -0.1", "min_effect is -0.1, expected at least 0"),
        ("min_effect = nan", "min_effect is nan, expected a finite number"),
        ("base = 7", "base is 7, expected a valid string"),
        ('on_inconclusive = "ignore"', "on_inconclusive is 'ignore', expected 'warn' or 'fail'"),
        ('fail_on = ["fastr"]', "fail_on: unknown verdict 'fastr'. Did you mean faster"),
        ("roundz = 3", "roundz is unknown, did you mean rounds"),
        ("xyz = 3", "xyz is unknown, expected suite, base, rounds"),
        ("allow.second = 0.1", "allow.second is unknown, did you mean seconds"),
        ('allow.seconds = "5%"', "allow.seconds is '5%', expected a valid number"),
        ("allow.memory = true", "allow.memory is True, expected a valid number"),
        ("allow.memory = inf", "allow.memory is inf, expected a finite number"),
        ("allow = 3", "allow is 3, expected"),
        ("[[tool.dpbench.gate.selection]]\nseconds = 0.1", "selection[0].select is missing"),
        ('[[tool.dpbench.gate.selection]]\nselect = "bk and"', "selection[0].select: cannot read -k 'bk and'"),
        (
            '[[tool.dpbench.gate.selection]]\nselect = "bk"\nflop = 1',
            "selection[0].flop is unknown, did you mean flops",
        ),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path, text, message):
    with pytest.raises(DpbenchError) as error:
        table(tmp_path, text)
    assert message in str(error.value)
    assert f"[tool.dpbench.gate] of {tmp_path / 'pyproject.toml'}: 1 mistake" in str(error.value)


def test_all_mistakes_are_told_at_once(tmp_path):
    with pytest.raises(DpbenchError, match="2 mistakes"):
        table(tmp_path, "rounds = 0\nallow.seconds = -1")
    with pytest.raises(DpbenchError, match="2 mistakes"):
        table(tmp_path, 'fail_on = "x"\n[[tool.dpbench.gate.selection]]\nselect = ""')


def test_a_gate_that_is_no_table_and_a_file_that_is_no_toml_are_mistakes(tmp_path):
    with pytest.raises(DpbenchError, match="is 5, expected a table"):
        written(tmp_path, "[tool.dpbench]\ngate = 5")
    with pytest.raises(DpbenchError, match="is not TOML"):
        written(tmp_path, "[tool.dpbench.gate")


@pytest.mark.parametrize("place", ["allow", "selection"])
def test_a_limit_below_the_minimum_effect_would_never_count_and_is_refused(tmp_path, place):
    table = (
        "allow.seconds = 0.01" if place == "allow" else '[[tool.dpbench.gate.selection]]\nselect = "bk"\nseconds = 0.01'
    )
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.dpbench.gate]\n{table}\n")
    with pytest.raises(DpbenchError, match=r"seconds is 0.01, expected at least min_effect \(0.03\)"):
        rules(path)
    path.write_text(f"[tool.dpbench.gate]\nmin_effect = 0.01\n{table}\n")
    assert rules(path).min_effect == 0.01
