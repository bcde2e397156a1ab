"""The picture of the layerwise decision."""

from __future__ import annotations

import struct

import pytest

from dpbench.decision import Decision
from dpbench.reporting.decisions import chart, draw

LAYERS = [
    Decision("features.conv1.weight", 100, 27, 64),
    Decision("features.conv2.weight", 50, 576, 64),
    Decision("head.weight", 1, 512, 10),
]
FIRST_GHOST = "first ghost norm: 2, features.conv2.weight"


def drawn(path, decisions=LAYERS, title="a model T=4"):
    draw(decisions, title, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG\r\n"), (".svg", b"<?xml"), (".pdf", b"%PDF-")], ids=["png", "svg", "pdf"]
)
def test_it_is_written_in_the_format_of_its_name(tmp_path, suffix, start):
    path = tmp_path / f"decisions{suffix}"
    assert drawn(path).startswith(start)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_picture_is_the_same_bytes(tmp_path, suffix):
    assert drawn(tmp_path / f"one{suffix}") == drawn(tmp_path / f"two{suffix}")


def test_it_names_the_first_layer_with_a_ghost_norm_and_no_other(tmp_path):
    text = drawn(tmp_path / "it.svg").decode()
    assert FIRST_GHOST in text
    assert "head.weight" not in text
    assert "features.conv1.weight" not in text


def test_it_has_a_title_a_legend_and_both_axes(tmp_path):
    text = drawn(tmp_path / "it.svg").decode()
    for said in (
        "a model T=4",
        "2T², ghost norm",
        "pd, instantiate",
        "elements for one example",
        "layers, in the order",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("layer", "ghost"), zip(LAYERS, (False, True, True), strict=True), ids=["instantiated", "ghost", "one position"]
)
def test_one_layer_is_enough(tmp_path, layer, ghost):
    text = drawn(tmp_path / "it.svg", [layer]).decode()
    assert (f"first ghost norm: 1, {layer.name}" in text) == ghost


def test_where_every_layer_is_instantiated_there_is_no_first_ghost(tmp_path):
    assert "first ghost norm" not in drawn(tmp_path / "it.svg", LAYERS[:1] * 3).decode()


def test_as_much_of_both_is_instantiated(tmp_path):
    """The rule asks for 2T^2 < pd."""
    assert "first ghost norm" not in drawn(tmp_path / "it.svg", [Decision("w", 2, 2, 4)]).decode()


def width(path):
    return struct.unpack(">I", path.read_bytes()[16:20])[0]


def test_a_deeper_network_has_a_wider_picture(tmp_path):
    paths = []
    for depth in (1, 3, 60):
        paths.append(tmp_path / f"{depth}.png")
        draw(LAYERS[:1] * depth, "", paths[-1])
    small, also_small, large = map(width, paths)
    assert small == also_small < large


def test_the_style_of_others_is_left_alone(tmp_path):
    from matplotlib import rcParams

    before = dict(rcParams)
    drawn(tmp_path / "it.png")
    assert dict(rcParams) == before


def test_as_a_figure_it_has_a_mark_of_either_kind_for_each_layer():
    (axes,) = chart(LAYERS, "a model").axes
    ghost, instantiate = (line for line in axes.lines if line.get_label()[:3] in ("2T²", "pd,"))
    assert list(ghost.get_ydata()) == [20000, 5000, 2]
    assert list(instantiate.get_ydata()) == [1728, 36864, 5120]
