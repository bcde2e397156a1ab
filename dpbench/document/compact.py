"""An SVG of matplotlib's with nothing in it that does not show: a page holds many of them.

Coordinates to a hundredth of a point; no identifier that nothing refers to, no group of one, no space between elements;
a style that several elements have is a class, and the font is the whole picture's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import count
from xml.etree.ElementTree import Element

NUMBER = re.compile(r"-?\d+\.\d+")
COORDINATES = ("d", "x", "y", "width", "height", "transform")
UNTURNED = re.compile(r"\s*rotate\(-?0(\.0+)?( [^)]*)?\)")
FONT = re.compile(r"font-family: ([^;]*)(; |$)")
REFERENCE = re.compile(r"#([^\s)]+)")


def compact(root: Element, name: str) -> None:
    """Make it smaller, in place. ``name``: what its identifiers begin with; elements have names without a namespace."""
    values = [value for element in root.iter() for value in element.attrib.values()]
    referred = dict.fromkeys(found for value in values for found in REFERENCE.findall(value))
    known = {element.get("id") for element in root.iter()}
    names = {old: f"{name}-{i}" for i, old in enumerate(old for old in referred if old in known)}
    for element in root.iter():
        _shorten(element, names)
    _unwrap(root)
    _classes(root, name)


def _shorten(element: Element, names: Mapping[str, str]) -> None:
    if (identifier := element.attrib.pop("id", None)) in names:
        element.set("id", names[str(identifier)])
    for attribute, value in element.attrib.items():
        if attribute in COORDINATES:
            value = NUMBER.sub(_rounded, UNTURNED.sub("", value))
            element.set(attribute, " ".join(value.split()))
        elif attribute == "style":
            element.set(attribute, FONT.sub("", value).rstrip("; "))
        elif "#" in value:
            element.set(attribute, REFERENCE.sub(lambda found: f"#{names.get(found[1], found[1])}", value))
    for attribute in ("transform", "style"):
        if element.get(attribute) == "":
            del element.attrib[attribute]
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")


def _unwrap(element: Element) -> None:
    """Groups that say nothing are replaced by what is in them, from the inside out."""
    for child in element:
        _unwrap(child)
    for i, child in reversed(list(enumerate(element))):
        if child.tag == "g" and not child.attrib:
            element[i : i + 1] = list(child)
        elif child.tag == "defs" and not len(child):
            element.remove(child)


def _classes(root: Element, name: str) -> None:
    """A style of several elements as a class of this picture, which has an identifier for that."""
    times = Counter(style for element in root.iter() if (style := element.get("style")))
    letters = count()
    classes = {style: f"s{next(letters)}" for style, n in times.items() if n > 1}
    for element in root.iter():
        if (style := element.get("style")) in classes:
            element.set("class", classes[str(style)])
            del element.attrib["style"]
    if classes:
        root.set("id", f"{name}-svg")
        sheet = Element("style")
        sheet.text = "".join(f"#{name}-svg .{short}{{{style}}}" for style, short in classes.items())
        root.insert(0, sheet)
