from dpbench.document.footnotes import Footnotes


def test_the_same_note_has_the_same_number():
    notes = Footnotes()
    assert [notes.number(n) for n in ("a", "b", "a")] == [1, 2, 1]
    assert list(notes) == [(1, "a"), (2, "b")]
