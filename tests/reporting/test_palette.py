import itertools

from dpbench.reporting import palette


def test_no_two_known_implementations_look_alike():
    for a, b in itertools.combinations(palette.KNOWN.values(), 2):
        assert a.marker != b.marker
        assert (a.colour, a.line) != (b.colour, b.line)


def test_a_stranger_looks_the_same_everywhere_and_like_nobody_we_know():
    known = {look.colour for look in palette.KNOWN.values()}
    assert palette.look("theirs") == palette.look("theirs")
    assert len({palette.look(f"theirs{i}") for i in range(30)}) > 15
    assert all(palette.look(f"theirs{i}").colour not in known for i in range(30))


def test_the_baseline_is_neutral_and_comes_first():
    red, green, blue = (palette.look("nonprivate").colour[i : i + 2] for i in (1, 3, 5))
    assert red == green == blue
    assert palette.order({"zeta", "bk", "alpha", "nonprivate"}) == ["nonprivate", "bk", "alpha", "zeta"]
