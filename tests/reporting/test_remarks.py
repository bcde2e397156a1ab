from dpbench.coverage import Coverage
from dpbench.records import Outcome
from dpbench.reporting.remarks import named, remarks, said_of
from dpbench.rows import rows
from tests.records_for_tests import PARTIAL, record


def row(coverage, outcome=Outcome.OK, reason=""):
    return rows([record(coverage=coverage, outcome=outcome, reason=reason)])[0]


def test_full_coverage_by_rules_needs_no_remark():
    assert said_of(rows([record()])[0]) == []
    assert said_of(row(None)) == []


def test_what_got_no_gradient_and_what_is_slow_is_said():
    assert remarks(row(PARTIAL)) == [
        "12 % of the parameters got no gradient: cls_token, pos_embed",
        "3.0 % of the parameters by the generic rule: slow",
    ]


def test_an_old_record_knows_no_names():
    assert remarks(row(Coverage(1000, 1))) == ["over 99 % of the parameters got no gradient"]


def test_many_names_are_counted():
    assert named(["a", "b", "c"]) == "a, b, c"
    assert named(list("abcdefg")) == "a, b, c and 4 more"


def test_the_reason_comes_first_and_a_refusal_needs_no_remark():
    assert said_of(row(PARTIAL, Outcome.WRONG, "b\n differs"))[0] == "b differs"
    assert said_of(row(Coverage(7, 0), Outcome.REFUSED, "no groups")) == ["no groups"]
