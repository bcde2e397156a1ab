import json
import math
import random
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dpbench.document.bibtex import bibtex
from dpbench.document.page import page
from dpbench.document.parts import Column, Entry, Grid, Section, Taken
from dpbench.document.works import Work
from dpbench.errors import MissingExtra
from dpbench.reporting.palette import KNOWN
from tests.document.made_up import NASTY, document, small

VOID = {"meta", "link", "input", "br"}


class Parsed(HTMLParser):
    """Every element with its attributes and the text in it; tags have to be closed as they were opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.closed = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [element for element in self.elements if element["tag"] == tag]

    def data(self):
        (island,) = [e for e in self.all("script") if e.get("type") == "application/json"]
        return json.loads(island["text"])


@pytest.fixture(scope="module")
def text():
    return page(document())


@pytest.fixture(scope="module")
def parsed(text):
    return Parsed(text)


def test_the_same_document_gives_the_same_page(text):
    assert page(document()) == text


def test_it_is_a_document_of_landmarks(text, parsed):
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(parsed.all(landmark)) == 1, landmark
    assert all(e.get("aria-labelledby") for e in parsed.all("section") + parsed.all("figure"))


def test_every_id_is_given_once_and_every_anchor_leads_somewhere(parsed):
    ids = [e["id"] for e in parsed.elements if "id" in e]
    assert len(ids) == len(set(ids))
    records = {f"r{i}" for i in range(len(document().records))}
    for element in parsed.elements:
        target = element.get("href", "")
        if target.startswith("#"):
            assert target[1:] in records | set(ids), target
        for name in ("aria-labelledby", "data-copies"):
            assert element.get(name, ids[0]) in ids
        for inner in re.findall(r"url\(#([^)]*)\)", " ".join(str(v) for k, v in element.items() if k != "text")):
            assert inner in ids


def test_nothing_is_loaded_from_anywhere(text, parsed):
    """Addresses of the web stand in links of citations only; the policy forbids the rest."""
    (policy,) = [e["content"] for e in parsed.all("meta") if e.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert not any("src" in e for e in parsed.elements)
    away = [e for e in parsed.elements if not e.get("href", "#").startswith(("#", "data:"))]
    assert [(e["tag"], e["href"]) for e in away] == [
        ("a", "https://arxiv.org/abs/2210.00038"),
        ("a", "https://arxiv.org/abs/2110.05679"),
    ]
    styles = "".join(e["text"] for e in parsed.all("style"))
    assert not re.search(r"@import|url\((?!#)", styles)


def test_a_citation_links_to_its_paper_and_stays_its_text():
    cited = Work("k", "article", ("A. <b>B</b>",), "A <i>title</i>", "PoPETs", 2021, "2009.03106")
    book = replace(cited, kind="book", arxiv="")
    parsed = Parsed(page(replace(small(), citations=(cited, book))))
    links = [e["href"] for e in parsed.all("a") if not e["href"].startswith("#")]
    assert links == ["https://arxiv.org/abs/2009.03106"]
    assert {str(cited), str(book)} <= {e["text"] for e in parsed.all("li")}
    assert bibtex([cited, book]) in [e["text"] for e in parsed.all("pre")]


def test_what_a_name_means_elsewhere_it_does_not_mean_here(text, parsed):
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert [e.get("type") for e in parsed.all("script")] == [None, "application/json", None]
    assert not [e for e in parsed.elements if any(name.startswith("on") for name in e)]
    headings = [e["text"] for e in parsed.all("h2")]
    assert NASTY in headings
    assert NASTY in [e["text"] for e in parsed.all("li")]
    names = next(c for c in parsed.data()["columns"] if c["name"] == "implementation")["values"]
    assert NASTY in names


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ud800", "\uffff"])
def test_characters_that_no_page_may_hold_are_shown_as_such(character):
    name = f"a{character}b"
    grid = Grid("x", name, (Column(name),), ((Entry(name),),))
    made = page(small([Taken("A", 1, "bk", name, "ok", {})], [Section("s", name, (name,), (grid,))]))
    made.encode()
    assert character not in made
    assert "a\N{REPLACEMENT CHARACTER}b" in made


def test_charts_have_a_size_a_description_and_a_style_sheet_for_themselves_alone(parsed):
    charts = [e for e in parsed.all("svg") if e.get("role") == "img"]
    assert len(charts) == 4
    assert all(float(e["width"]) > 100 and float(e["height"]) > 100 for e in charts)
    assert "Lines of throughput over batch size" in charts[0]["aria-label"]
    of_the_page, *own = parsed.all("style")
    for chart, style in zip(charts, own, strict=True):
        rules = style["text"].removesuffix("}").split("}")
        assert all(re.match(rf"#{chart['id']} \.s\d+{{[^{{]+$", rule) for rule in rules)


def test_an_implementation_has_its_colour_in_charts_and_beside_its_name(text, parsed):
    for name in ("bk", "opacus"):
        colour = KNOWN[name].colour.lower()
        drawn = re.search(rf'<g id="(look-[^"]*)">(?:(?!</g>).)*{colour}', text)
        (swatch,) = {e["href"] for e in parsed.all("use") if e.get("href") == f"#{drawn[1]}"}
        assert swatch
        assert text.count(f"{colour})") > 10
        assert re.search(rf"--c{colour[1:]}: light-dark\({colour}, #", text)


def test_notes_of_entries_are_numbered_once_and_lead_back_to_their_words(parsed):
    notes = {e["id"]: e["text"] for e in parsed.all("li") if "-note-" in e.get("id", "")}
    assert notes["table-beside-note-1"] == "the worker reached its limit of 5.0 GB"
    assert len([t for i, t in notes.items() if i.startswith("table-beside")]) == 3
    marks = [e for e in parsed.all("a") if e.get("href") == "#table-beside-note-1"]
    assert {e["text"] for e in marks} == {"1"}
    assert len(marks) > 3


def test_what_an_entry_is_is_said_in_words_too(parsed):
    cells = parsed.all("td") + parsed.all("th")
    for kind in ("best", "muted", "bad"):
        marked = [e for e in cells if kind in e.get("class", "").split()]
        assert marked
        assert all(f"({kind})" in e["text"] for e in marked)


def test_a_table_and_a_chart_say_which_records_they_are_from(parsed):
    runs = [e for e in parsed.all("a") if "data-records" in e]
    assert runs[0]["data-records"] == "0-167"
    assert runs[0]["text"] == "168 records"
    assert {e["text"] for e in runs} == {"168 records", "133 records", "1 record"}


def test_records_come_back_as_they_were(parsed):
    data = parsed.data()
    records = document().records
    for column in data["columns"]:
        values = [column["values"][i] for i in column["at"]] if "at" in column else column["values"]
        for value, record in zip(values, records, strict=True):
            given = record.figures.get(column["name"], getattr(record, column["name"], None))
            if isinstance(given, float) and math.isnan(given):
                given = "nan"
            assert value == given
    assert data["count"] == len(records)


def test_ten_thousand_records_stay_under_five_megabytes():
    chance = random.Random(7)
    names = [f"figure_{i}" for i in range(16)]
    versions = [f"1.{i}" for i in range(3)]
    records = [
        Taken(
            "A",
            i + 2,
            list(KNOWN)[i % 12],
            f"transformers:gpt2(n_layer={i // 96}) B={1 << i // 12 % 8} T=128 precision=tf32",
            "ok",
            {**{name: chance.random() for name in names[: 10 if i % 2 else 16]}, "version": chance.choice(versions)},
        )
        for i in range(10_000)
    ]
    assert len(page(small(records)).encode()) < 5e6


def test_a_report_of_nothing_is_a_page(text):
    assert "The 0 records are lines" in page(small())


def test_without_jinja2_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'dpsgd-bench[report]'")):
        page(small())
