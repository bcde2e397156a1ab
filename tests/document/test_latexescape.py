import re

import pytest

from dpbench.document.latexescape import breakable, comment, escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bk_mixopt", r"bk\_mixopt"),
        ("50 % & $1 #2 {a}", r"50 \% \& \$1 \#2 \{a\}"),
        ("a\\b~c^d", r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"),
        ("<a|b>", r"\textless{}a\textbar{}b\textgreater{}"),
        ("-- ''", "{-}{-} {'}{'}"),
        ("[x]*", "{[}x{]}{*}"),
        ("2T²", "2T$^{2}$"),
        ("Müller, Tramèr, Łoś", r"M\"{u}ller, Tram\`{e}r, \L{}o\'{s}"),
        ("naïf", r"na\"{\i}f"),
        ("蛇🐍", r"{[}U+86C7{]}{[}U+1F40D{]}"),
        ("a\n b", "a b"),
    ],
)
def test_text_as_latex_takes_it(text, shown):
    assert escape(text) == shown


def test_whatever_comes_nothing_but_commands_and_ascii_is_left():
    everything = escape("".join(map(chr, [*range(32, 0x500), *range(0x2000, 0x2200), 0x1F600])))
    assert everything.isascii()
    bare = re.sub(r"\\[&%$#_{}]", "", everything)
    bare = re.sub(r"\$\^\{2\}\$|\$\\(times|mu|pm|leq|geq)\$", "", bare)
    assert not set("&%#_$") & set(bare)
    bare = re.sub(r"\\[\"'`^~=.]", "", bare)
    assert not set("^~") & set(bare)
    assert bare.count("{") == bare.count("}")


def test_a_comment_is_one_line_of_ascii():
    assert comment("a\nb é") == "% a b \\xe9"


def test_names_and_paths_break_within_and_sentences_as_ever():
    assert breakable("m(a_b=1,c=2), a/b") == r"m(a\_\allowbreak{}b=1,\allowbreak{}c=2), a/\allowbreak{}b"
    assert breakable("100 %, so") == r"100 \%, so"
