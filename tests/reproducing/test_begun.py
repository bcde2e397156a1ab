"""A directory of a reproduction: one run at a time, never over another, and gone on with as it was begun."""

import errno
import os

import pytest

from dpbench.errors import DpbenchError
from dpbench.reproducing.begun import begin, go_on, held, opened, refuse_full
from dpbench.reproduction import read, write
from tests.reproducing.tiny import ENVIRONMENT, asked, written


@pytest.fixture
def paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    return tmp_path


def test_what_was_asked_is_in_it_from_the_beginning(paper):
    ask = asked(paper, card="T4", measured=False, command="dpbench reproduce")
    with held(ask.directory):
        write(opened(ask, ENVIRONMENT, {"one": "a"}), ask.directory)
    found = read(ask.directory)
    assert (found.asked, found.card, found.device, found.measured) == (("one", "two"), "T4", None, False)
    assert [(p.id, p.citation) for p in found.papers] == [("mine", "Somebody. Something. 2030")]
    assert found.figures == ()


def test_it_goes_on_as_it_was_begun(paper):
    begun = begin(asked(paper, card="T4", device="cpu", measured=False), ENVIRONMENT)
    again = go_on(asked(paper), begun, ENVIRONMENT)
    assert (again.card, again.device, again.measured, again.resumed) == ("T4", "cpu", False, True)
    assert go_on(asked(paper, card="T4", device="cpu", measured=False), begun, ENVIRONMENT) == again


@pytest.mark.parametrize(
    ("figures", "given", "said"),
    [
        (["one"], {}, "was begun with figures one, two, got one; go on with: dpbench reproduce --resume"),
        ([], {"card": "A100-40GB"}, "was begun with card T4, got A100-40GB"),
        ([], {"device": "cuda"}, "was begun with device None, got cuda"),
        ([], {"measured": False}, "was begun with measure True, got False"),
    ],
)
def test_other_figures_another_card_or_device_are_refused(paper, figures, given, said):
    begun = begin(asked(paper, card="T4"), ENVIRONMENT)
    with pytest.raises(DpbenchError, match=said):
        go_on(asked(paper, *figures, **given), begun, ENVIRONMENT)


def test_another_machine_is_refused(paper):
    begun = begin(asked(paper), ENVIRONMENT)
    with pytest.raises(DpbenchError, match=r"was begun on another machine \(m1; this is m2\)"):
        go_on(asked(paper), begun, {"machine": {"id": "m2"}})


def test_two_runs_at_once_do_not_meet(tmp_path):
    with held(tmp_path / "out"), pytest.raises(DpbenchError, match="another run writes to .*out; wait until it ends"):
        with held(tmp_path / "out"):
            pass
    with held(tmp_path / "out"):
        pass


def test_a_directory_in_which_there_is_something_is_left_as_it_is(paper):
    ask = asked(paper)
    with held(ask.directory):
        write(opened(ask, ENVIRONMENT, {"one": "a"}), ask.directory)
    with pytest.raises(DpbenchError, match="there is a reproduction in .*; go on with: dpbench reproduce --resume"):
        opened(ask, ENVIRONMENT, {"one": "a"})
    with pytest.raises(DpbenchError, match="papers is not empty, expected a new directory"):
        refuse_full(paper / "papers")


def test_a_directory_that_cannot_be_made_or_locked_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for name in ("file", "file/in"):
        with pytest.raises(DpbenchError, match="cannot make the directory"), held(tmp_path / name):
            pass

    def unlockable(*given):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", unlockable)
    with pytest.raises(DpbenchError, match="expected a file system with locks"), held(tmp_path / "out"):
        pass
