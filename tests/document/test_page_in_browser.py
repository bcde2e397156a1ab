"""What a reader sees and does, in a real browser; skipped where there is none."""

import random

import pytest

from dpbench.document.bibtex import bibtex
from dpbench.document.page import page
from dpbench.document.parts import Taken
from tests.document.chromium import FOUND, Chromium
from tests.document.made_up import NASTY, document, small

pytestmark = pytest.mark.skipif(FOUND is None, reason="there is no Chromium here")

BESIDE = "document.querySelector('#table-beside')"
ROWS = f"[...{BESIDE}.querySelectorAll('tbody tr')]"


@pytest.fixture(scope="module")
def browser():
    with Chromium() as one:
        yield one


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(page(document()), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, file):
    browser.complaints.clear()
    browser.requests.clear()
    browser.size(1280, 900)
    browser.prefers("light")
    browser.open(file)
    browser.evaluate("localStorage.clear()")
    browser.open(file)
    yield browser
    assert browser.complaints == []
    assert [r for r in browser.requests if not r.startswith(("file:", "about:", "data:", "blob:"))] == []


def column(browser, place):
    return browser.evaluate(f"{ROWS}.map(row => row.cells[{place}].textContent)")


def click(browser, selector):
    browser.evaluate(f"document.querySelector({selector!r}).click()")
    browser.drawn()


def typed(browser, selector, text):
    browser.evaluate(
        f"(input => {{ input.value = {text!r}; input.dispatchEvent(new Event('input')); }})"
        f"(document.querySelector({selector!r}))"
    )


def sort_of(browser, place):
    return browser.evaluate(f"{BESIDE}.querySelectorAll('thead th')[{place}].getAttribute('aria-sort')")


def test_the_console_is_silent_and_nothing_is_asked_for(opened):
    assert len([r for r in opened.requests if r.startswith("file:")]) == 2  # it was opened twice


def test_a_head_sorts_upwards_downwards_and_back(opened):
    before = column(opened, 1)
    numbers = sorted(float(text) for text in before if text != "\N{EN DASH}")
    missing = ["\N{EN DASH}"] * (len(before) - len(numbers))
    seen = []
    for _ in range(3):
        click(opened, "#table-beside thead th:nth-child(2) button")
        seen.append((sort_of(opened, 1), column(opened, 1)))
    (up, upwards), (down, downwards), (none, back) = seen
    assert (up, down, none) == ("ascending", "descending", "none")
    assert [float(text) for text in upwards[: len(numbers)]] == numbers
    assert [float(text) for text in downwards[: len(numbers)]] == numbers[::-1]
    assert missing
    assert upwards[len(numbers) :] == downwards[len(numbers) :] == missing
    assert back == before


def test_a_head_sorts_by_keyboard(opened):
    opened.evaluate(f"{BESIDE}.querySelector('thead th button').focus()")
    opened.key("Enter", 13)
    opened.drawn()
    assert sort_of(opened, 0) == "ascending"
    labels = column(opened, 0)
    # As people sort them: 4 before 16.
    assert labels[:3] == ["timm:vit_small B=4", "timm:vit_small B=8", "timm:vit_small B=16"]


def test_sorting_by_one_column_is_no_longer_sorting_by_another(opened):
    for place in (1, 2):
        click(opened, f"#table-beside thead th:nth-child({place}) button")
    assert (sort_of(opened, 0), sort_of(opened, 1)) == ("none", "ascending")


def test_a_filter_leaves_the_rows_with_every_word(opened):
    typed(opened, "#table-beside input", "ROBERTA t=64")
    shown = opened.evaluate(f"{ROWS}.filter(row => row.offsetHeight).map(row => row.cells[0].textContent)")
    assert shown == [f"transformers:roberta-base B={b} T=64" for b in (4, 8, 16, 32)]
    assert opened.evaluate(f"{BESIDE}.querySelector('output').textContent") == "4 of 28 rows"
    typed(opened, "#table-beside input", "")
    assert opened.evaluate(f"{ROWS}.filter(row => row.offsetHeight).length") == 28


def test_a_number_says_its_note_and_leads_to_it(opened):
    mark = "document.querySelector('#table-gradients tbody td sup a')"
    assert opened.evaluate(f"{mark}.title") == "embeddings.weight differs by 0.13 (at most 1e-8)"
    opened.evaluate("document.querySelector('#table-gradients details').open = false")
    opened.evaluate(f"{mark}.click()")
    opened.drawn()
    assert opened.evaluate("document.querySelector('#table-gradients details').open") is True
    assert opened.evaluate("document.querySelector(':target').offsetHeight") > 0


def test_charts_are_seen_with_all_their_lines(opened):
    sizes = opened.evaluate(
        "[...document.querySelectorAll('figure.chart svg')].map(svg => svg.getBoundingClientRect().toJSON())"
    )
    assert len(sizes) == 4
    assert all(size["width"] > 400 and size["height"] > 200 for size in sizes)
    assert opened.evaluate("document.querySelector('.sign').getBoundingClientRect().width") == 26


@pytest.mark.parametrize("fragment", ["", "#r3", f"#r{len(document().records) - 1}"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_width_makes_the_page_wider_than_its_window(opened, file, width, fragment):
    opened.call("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1, mobile=False)
    opened.open(file, fragment)
    for element in ("document.documentElement", "document.querySelector('#panel')"):
        assert opened.evaluate(f"{element}.scrollWidth") <= opened.evaluate(f"{element}.clientWidth")
    assert opened.evaluate("innerWidth") == width
    first = opened.evaluate(
        f"(() => {{ const box = {BESIDE}.querySelector('.scroll'); box.scrollLeft = 200;"
        f" return {ROWS}[0].cells[0].getBoundingClientRect().left - box.getBoundingClientRect().left; }})()"
    )
    assert first == 0  # what a row is of stays in sight


def test_an_address_with_a_record_shows_all_of_it(opened, file):
    opened.open(file, "#r3")
    record, source = document().records[3], document().sources[0]
    said = opened.evaluate("document.querySelector('#panel').innerText")
    assert opened.evaluate("document.querySelector('#panel').open") is True
    assert record.line == 5
    for text in (record.implementation, record.workload, record.outcome, f"{source.file}, line 5", source.command):
        assert text in said
    for name, value in record.figures.items():
        assert value is None or f"{name}\n{value}" in said
    for text in (source.machine, *source.versions.values()):
        assert text in said


def test_a_link_in_a_table_opens_its_record_and_escape_closes_it(opened):
    click(opened, "#table-beside tbody tr:nth-child(2) td:nth-child(3) a")
    assert opened.evaluate("location.hash") == "#r7"
    assert "transformers:gpt2 B=8 T=64" in opened.evaluate("document.querySelector('#panel').innerText")
    opened.key("Escape", 27)
    opened.drawn()
    assert opened.evaluate("document.querySelector('#panel').open") is False
    assert opened.evaluate("location.hash") == "#records"


def test_a_record_with_a_name_of_markup_is_shown_as_text(opened, file):
    last = len(document().records) - 1
    opened.open(file, f"#r{last}")
    assert NASTY in opened.evaluate("document.querySelector('#panel h2').textContent")
    assert opened.evaluate("document.querySelectorAll('#panel b, #panel script').length") == 0
    assert 'modules\n{"1":7,"2a":7}' in opened.evaluate("document.querySelector('#panel').innerText")


def test_an_address_without_a_record_shows_none(opened, file):
    for fragment in ("#r99999", "#r-1", "#rx"):
        opened.open(file, fragment)
        assert opened.evaluate("document.querySelector('#panel').open") is False


def test_a_chart_leads_to_the_records_that_are_drawn(opened):
    click(opened, "#chart-throughput-vs-batch [data-records]")
    assert opened.evaluate("document.querySelector('#record-list output').textContent").startswith(
        "133 of 169 records of:"
    )
    click(opened, "#record-list .tools button")
    assert opened.evaluate("document.querySelector('#record-list output').textContent") == "169 of 169 records"


def test_records_are_filtered_and_sorted_and_turned(opened):
    heads = opened.evaluate("[...document.querySelectorAll('#record-list thead th')].map(th => th.innerText)")
    assert heads[:4] == ["record", "implementation", "workload", "outcome"]
    place = heads.index("seconds")
    typed(opened, "#record-list input", "ghostclip gpt2")
    click(opened, f"#record-list thead th:nth-child({place + 1}) button")
    cells = "[...document.querySelectorAll('#record-list tbody tr')].map(row => row.cells[{}].textContent)"
    seconds = [float(s) for s in opened.evaluate(cells.format(place)) if s]
    assert len(seconds) > 5
    assert seconds == sorted(seconds)
    assert set(opened.evaluate(cells.format(1))) == {"ghostclip"}
    typed(opened, "#record-list input", "")
    click(opened, "#record-list .pager button:last-child")
    assert opened.evaluate("document.querySelector('.pager span').textContent") == "51\N{EN DASH}100 of 169"


def colours(browser):
    return browser.evaluate(
        "['body', '.chart text[style*=c222222]', '#look-1 path', '.origin'].map(selector => {"
        " const style = getComputedStyle(document.querySelector(selector));"
        " return [style.backgroundColor, style.color, style.fill, style.stroke].join(' '); })"
    )


def test_dark_is_dark_and_the_button_goes_both_ways(opened, file):
    light = colours(opened)
    opened.prefers("dark")
    dark = colours(opened)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    click(opened, "#theme")
    assert colours(opened) == light
    opened.open(file)
    assert colours(opened) == light  # the choice is kept
    opened.prefers("light")
    click(opened, "#theme")
    assert colours(opened) == dark


def test_print_is_light_and_has_no_controls_and_no_table_that_is_cut(opened):
    light = colours(opened)
    opened.prefers("dark", "print")
    assert colours(opened) == light
    seen = "[...document.querySelectorAll('button:not(.sort), input, nav, dialog')].filter(e => e.offsetHeight).length"
    assert opened.evaluate(seen) == 0
    assert opened.evaluate("getComputedStyle(document.querySelector('.table .scroll')).overflow") == "visible"
    assert opened.printed().startswith(b"%PDF")


def test_what_is_copied_is_the_command_and_the_methods_by_paragraph(opened):
    opened.evaluate(
        "Object.defineProperty(navigator, 'clipboard', "
        "{ value: { writeText: async text => { globalThis.copied = text; } } }); 0"
    )
    for target, text in (
        ("command-B", document().sources[1].command),
        ("methods-text", "\n\n".join(document().methods)),
        ("citations-text", "\n\n".join(map(str, document().citations))),
        ("bibtex-text", bibtex(document().citations)),
    ):
        click(opened, f"[data-copies={target}]")
        assert opened.evaluate("globalThis.copied") == text
        assert opened.evaluate(f"document.querySelector('[data-copies={target}]').textContent") == "Copied"


def test_a_chart_is_saved_in_its_own_colours(opened):
    opened.evaluate(
        "globalThis.saved = new Promise(kept => {"
        " URL.createObjectURL = blob => { kept(blob.text()); return 'data:,'; }; });"
        "HTMLAnchorElement.prototype.click = function () { globalThis.as = this.download; }; 0"
    )
    click(opened, "[data-downloads=throughput-vs-batch]")
    text = opened.evaluate("saved")
    assert opened.evaluate("globalThis.as") == "throughput-vs-batch.svg"
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "var(" not in text
    assert "#0072b2" in text
    assert (
        opened.evaluate(f"new DOMParser().parseFromString({text!r}, 'image/svg+xml').querySelector('parsererror')")
        is None
    )


def test_without_scripts_the_records_are_said_to_be_in_the_files(opened, file):
    opened.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened.open(file)
        assert "lines of the files" in opened.evaluate("document.body.innerText")
        assert (
            opened.evaluate("[...document.querySelectorAll('button, input')].filter(e => e.offsetHeight).length") == 0
        )
    finally:
        opened.call("Emulation.setScriptExecutionDisabled", value=False)


def test_of_ten_thousand_records_fifty_are_drawn(browser, tmp_path):
    chance = random.Random(3)
    records = [Taken("A", i, "bk", f"gpt2 B={i}", "ok", {"t": chance.random()}) for i in range(10_000)]
    (tmp_path / "index.html").write_text(page(small(records)))
    browser.open(tmp_path / "index.html", "#r9999")
    assert browser.evaluate("document.querySelectorAll('#record-list tbody tr').length") == 50
    assert "gpt2 B=9999" in browser.evaluate("document.querySelector('#panel').innerText")
    typed(browser, "#record-list input", "b=777")
    assert browser.evaluate("document.querySelector('#record-list output').textContent") == "11 of 10000 records"
