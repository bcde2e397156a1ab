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


def test_in_the_dark_every_colour_can_be_told_from_the_paper():
    """Three to one is what WCAG 2.2 asks of graphics (1.4.11)."""
    names = [*palette.KNOWN, *(f"theirs{i}" for i in range(30))]
    for colour in {palette.look(name).colour for name in names}:
        assert contrast(palette.on_dark(colour), palette.DARK_PAPER) >= 3


def test_in_the_dark_no_two_families_come_closer_than_in_the_light_whatever_one_sees():
    colours = sorted({look.colour.lower() for look in palette.KNOWN.values()})
    for seen in SEEN.values():
        light, dark = (
            min(apart(one(a), one(b), seen) for a, b in itertools.combinations(colours, 2))
            for one in (str, palette.on_dark)
        )
        assert dark >= min(light, 0.09)


def test_greys_change_places_and_what_is_unknown_stays():
    assert palette.on_dark("#FFFFFF") == palette.DARK_PAPER
    assert palette.on_dark("#000000") == palette.DARK_INK
    assert palette.on_dark("#123456") == "#123456"
    assert contrast(palette.on_dark("#222222"), palette.DARK_PAPER) > 7
    assert contrast(palette.on_dark("#666666"), palette.DARK_PAPER) > 4.5


# Colour vision by Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# Oklab (Ottosson, 2020): cone responses of linear RGB, and lightness and two hues of their cube roots.
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
HUES = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def contrast(a, b):
    low, high = sorted(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (a, b))
    return (high + 0.05) / (low + 0.05)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def apart(a, b, seen):
    one, other = (
        [c ** (1 / 3) for c in times(CONES, [min(max(c, 0), 1) for c in times(seen, linear(x))])] for x in (a, b)
    )
    return sum((x - y) ** 2 for x, y in zip(times(HUES, one), times(HUES, other), strict=True)) ** 0.5
