import pytest

from dpbench.errors import DpbenchError, EmptySelection
from dpbench.records import Cell
from dpbench.selection import select
from tests.records_for_tests import workload

CELLS = [
    Cell(name, workload(model, batch, **axes))
    for model, axes in (
        ("transformers:gpt2(tie_word_embeddings=false)", {"seq_len": 64}),
        ("timm:vit_small", {}),
    )
    for batch in (8, 80)
    for name in ("nonprivate", "bk", "bk_mixopt")
]


def chosen(expression):
    return {(c.implementation, c.workload.model.partition("(")[0], c.workload.batch) for c in select(CELLS, expression)}


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("bk", 8),
        ("BK", 8),
        ("implementation=bk", 4),
        ("bk and not mixopt", 4),
        ("B=8", 6),
        ("batch=80", 6),
        ("T=64", 6),
        ("gpt2 or vit", 12),
        ("not (gpt2 or B=8)", 3),
        ("gpt2 and B=8 or vit and B=80", 6),
        ("not not nonprivate", 4),
        ("tie_word_embeddings=false", 6),
    ],
)
def test_an_expression_chooses(expression, number):
    assert len(chosen(expression)) == number


def test_and_binds_closer_than_or():
    assert chosen("vit or gpt2 and bk") == chosen("vit") | chosen("gpt2 and bk")
    assert chosen("(vit or gpt2) and bk") == chosen("bk")


def test_the_order_stays():
    assert select(CELLS, "bk or nonprivate") == CELLS


@pytest.mark.parametrize("expression", ["", "and", "bk and", "bk or or gpt2", "(bk", "bk)", "bk gpt2", "not"])
def test_what_cannot_be_read_is_said(expression):
    with pytest.raises(DpbenchError, match=r"cannot read -k .*expected|no closing bracket") as caught:
        select(CELLS, expression)
    assert caught.value.exit_code == 2


def test_an_empty_selection_says_what_there_was_and_exits_5():
    with pytest.raises(EmptySelection, match=r"none of 12 cells. Implementations: bk, bk_mixopt, nonprivate") as caught:
        select(CELLS, "opacus")
    assert "timm:vit_small B=8" in str(caught.value)
    assert caught.value.exit_code == 5
