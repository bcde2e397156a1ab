"""Papers as files: those that came with dpbench are whole, and mistakes of users are told by key."""

import pytest

from dpbench.errors import DpbenchError, EmptySelection
from dpbench.paper import Term
from dpbench.papers import available, chosen, leading_terms, read, read_all
from dpbench.reportpath import find
from tests.reproducing.tiny import PAPER, written

SHIPPED = sorted(find("papers").glob("*.toml"))
FIGURES = chosen(read_all(SHIPPED))


@pytest.mark.parametrize("figure", [figure for _, figure in FIGURES], ids=lambda figure: figure.id)
def test_shipped_numbers_say_where_they_stand_and_how_they_were_read(figure):
    assert bool(figure.numbers) <= bool(figure.printed and figure.read)
    assert all(run.here.why for run in figure.run if run.here.left_out)
    assert all(reason.says for reason in figure.reason)


def test_shipped_papers_have_ids_of_their_own():
    assert len({figure.id for _, figure in FIGURES}) == len(FIGURES) > 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('title = "First"', 'titel = "First"', "figure[0].titel is unknown"),
        ('title = "First"', "", "figure[0].title is missing"),
        ("bk = 800", 'bk = "fast"', "figure[0].row[0].throughput.bk is 'fast', expected a number above 0, 'oom', or"),
        ("bk = 800", "bk = -1", "bk is -1, expected a number above 0"),
        ("bk = 800", "bk = nan", "bk is nan, expected a number above 0"),
        ("bk = 800", "bk = true", "bk is True, expected a number above 0"),
        ("bk = 800", 'bk = ">=0"', "bk is '>=0', expected a number above 0"),
        ('"throughput", "memory"', '"speed"', "figure[0].run[0].quantities[0] is 'speed', expected 'throughput'"),
        ('why = "slow"', "", "left_out and why go together"),
        ('read = "bars"', "", "printed and read are needed beside numbers"),
        ('id = "one"', 'id = "a.b"', "figure[0].id is 'a.b', should match pattern"),
        ('title = "First"', 'title = "First"\nkind = "decisions"', "numbers of implementations in a figure of kind"),
    ],
)
def test_a_mistake_is_told_with_its_key_and_what_was_expected(tmp_path, before, after, said):
    assert before in PAPER
    path = written(tmp_path, PAPER.replace(before, after, 1))
    with pytest.raises(DpbenchError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("given", [123, 4.5, "oom", ">=40", "< 2.5"])
def test_what_may_be_printed(tmp_path, given):
    path = written(tmp_path, PAPER.replace("bk = 800", f"bk = {given!r}"))
    assert read(path).figure[0].row[0].throughput["bk"] == given


def test_a_file_that_is_none_is_one_error(tmp_path):
    with pytest.raises(DpbenchError, match="cannot read .*No such file.*expected a paper's figures in TOML"):
        read(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_text("a = [")
    with pytest.raises(DpbenchError, match="x.toml is not TOML"):
        read(tmp_path / "x.toml")


def test_the_users_papers_are_found_each_once(tmp_path, monkeypatch):
    path = written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [one.resolve() for one in available([path])] == [*(one.resolve() for one in SHIPPED), path]


def test_an_id_that_two_share_is_refused_by_name(tmp_path):
    path = written(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(PAPER.replace('id = "mine"', 'id = "other"').replace('id = "two"', 'id = "three"'))
    with pytest.raises(DpbenchError, match=f"2 figures are called 'one': in {path} and {other}"):
        read_all([path, other])
    other.write_text(PAPER)
    with pytest.raises(DpbenchError, match="2 papers are called 'mine'"):
        read_all([path, other])


def test_figures_are_chosen_by_id_pattern_or_paper(tmp_path):
    papers = read_all([written(tmp_path)])

    def ids(*patterns):
        return [figure.id for _, figure in chosen(papers, patterns)]

    assert ids() == ids("*") == ids("mine/*") == ["one", "two"]
    assert ids("t*") == ["two"]
    with pytest.raises(EmptySelection, match="no figure is called 'three'; there are one, two") as caught:
        ids("one", "three")
    assert caught.value.exit_code == 5


def test_terms_in_multiples_of_BTpd():
    # 2 BT^2(p + d) / BTpd = 2 * 16 * 12 / 32, and 2 Bpd / BTpd = 2 / 16.
    assert Term(of="x", BTTpd=2).of_layer(T=16, d=8, p=4) == 12
    assert Term(of="x", Bpd=2).of_layer(T=16, d=8, p=4) == 0.125
    assert Term(of="x", BTpd=6, BTTpd=2).of_layer(T=16, d=8, p=4) == 18
    assert leading_terms()["nonprivate"] == 6


def test_a_mistake_in_the_only_figure_is_the_only_mistake(tmp_path):
    path = written(tmp_path, PAPER[: PAPER.index('[[figure]]\nid = "two"')].replace("bk = 800", "bk = -1"))
    with pytest.raises(DpbenchError) as caught:
        read(path)
    assert "1 mistake" in str(caught.value)
    assert "at least 1 item" not in str(caught.value)
    empty = written(tmp_path, 'id = "mine"\ncitation = "C"\nfigure = []\n')
    with pytest.raises(DpbenchError, match="figure is .*at least 1 item"):
        read(empty)


def test_a_ratio_to_itself_is_refused(tmp_path):
    path = written(tmp_path, PAPER.replace("throughput = {", 'relative_to = "bk"\nthroughput = {', 1))
    with pytest.raises(DpbenchError, match="relative_to is 'bk', which has a number here; expected ratios to another"):
        read(path)
