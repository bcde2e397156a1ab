import re
from xml.etree import ElementTree

from dpbench.document.parts import Chart
from dpbench.document.vector import colours, svg
from dpbench.reporting.style import style


def chart(title="title", id="one", colour="#0072B2", alt=""):
    def draw():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        with style():
            figure = Figure(figsize=(3, 2))
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            axes.plot([1, 2, 3], [1, 4, 9], color=colour, marker="o", markeredgecolor="white")
            axes.set_title(title)
        return figure

    return Chart(id, "the caption", draw, alt)


def test_the_same_chart_is_the_same_text():
    assert svg(chart()) == svg(chart())


def test_the_size_is_that_of_the_figure_in_css_pixels():
    root = ElementTree.fromstring(svg(chart()))
    assert (root.get("width"), root.get("height")) == ("288", "192")  # 3 by 2 inches of 96 pixels


def test_two_charts_share_no_id_and_each_finds_its_own():
    roots = [ElementTree.fromstring(svg(chart(id=id))) for id in ("one", "two")]
    first, second = ({e.get("id") for e in root.iter()} - {None} for root in roots)
    assert first
    assert not first & second
    used = [e.get("href")[1:] for e in roots[0].iter("use")]
    clipped = re.findall(r"url\(#([^)]*)\)", svg(chart(id="one")))
    assert used
    assert clipped
    assert set(used) | set(clipped) <= first


def test_colours_can_be_replaced_and_stay_what_they_are_if_not():
    text = svg(chart())
    assert {"#0072b2", "#ffffff", "#222222", "#e6e6e6"} <= colours(text)
    assert "var(--c0072b2, #0072b2)" in text
    assert not re.search(r"(?<!, )#[0-9a-f]{6}\b", text)


def test_there_is_no_background_and_nothing_of_the_outside():
    root = ElementTree.fromstring(svg(chart()))
    tags = {e.tag for e in root.iter()}
    assert not tags & {"metadata", "script", "image"}
    assert not any(":" in tag or "}" in tag for tag in tags)
    # The figure and its panel, which matplotlib draws first.
    figure, panel = [e for e in root if e.tag == "path"][:2]
    sheet = next(root.iter("style")).text
    for patch in (figure, panel):
        style = patch.get("style") or re.search(rf"\.{patch.get('class')}{{([^}}]*)}}", sheet)[1]
        assert "fill: none" in style or "opacity: 0" in style


def test_no_rule_of_a_chart_holds_outside_of_it():
    root = ElementTree.fromstring(svg(chart(id="one")))
    for sheet in root.iter("style"):
        for rule in filter(str.strip, sheet.text.split("}")):
            assert rule.strip().startswith("#one")


def test_text_stays_text_whatever_it_says():
    for title in ('<b>"bold"</b> & #0072b2 id="x" url(#y) -->', "\N{ROCKET} emoji"):
        root = ElementTree.fromstring(svg(chart(title)))
        assert title in [e.text for e in root.iter("text")]


def test_it_is_described_by_its_alt_or_else_its_caption():
    for alt, said in (("a line upwards", "a line upwards"), ("", "the caption")):
        root = ElementTree.fromstring(svg(chart(alt=alt)))
        assert (root.get("role"), root.get("aria-label")) == ("img", said)
