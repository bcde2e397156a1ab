import pytest

from dpbench.cli import list as listing
from dpbench.errors import DpbenchError


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(listing.KINDS, "implementations", lambda: {"bk": "Book-keeping", "opacus": "Opacus algorithm"})
    monkeypatch.setitem(listing.KINDS, "models", lambda: {})
    monkeypatch.setitem(listing.KINDS, "devices", lambda: {"cpu": "2 threads"})


def test_one_kind_is_listed_bare(known, capsys):
    listing.list_("implementations")
    assert capsys.readouterr().out == "bk      Book-keeping\nopacus  Opacus algorithm\n"


def test_all_kinds_are_listed_with_their_names(known, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "mine.toml").write_text('title = "Mine"\n[axes]\nmodel = "a:x"\nbatch = 1\n')
    (tmp_path / "suites" / "torn.toml").write_text("title = ")
    listing.list_()
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line and line[0] != " "] == list(listing.KINDS)
    assert "models\n  none\n" in out
    assert "mine" in out
    assert "Mine" in out
    assert "cannot be read: suites/torn.toml is not TOML" in out


def test_an_unknown_kind_is_named(known):
    with pytest.raises(DpbenchError, match=r"unknown kind of thing to list 'model'. Did you mean models"):
        listing.list_("model")
