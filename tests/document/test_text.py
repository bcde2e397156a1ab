from xml.etree import ElementTree

from dpbench.document.text import legal


def test_what_is_left_is_what_xml_takes():
    every = "".join(chr(i) for i in range(0x10FFFF + 1))
    kept = legal(every).replace("&", "").replace("<", "")
    root = ElementTree.fromstring(f"<a>{kept}</a>".encode())
    assert root.text == kept.replace("\r", "\n")  # as XML reads line ends


def test_ordinary_text_is_left_alone():
    for text in ("tab\tnew\nline", "é \N{ROCKET} \N{EN DASH}", ""):
        assert legal(text) == text
