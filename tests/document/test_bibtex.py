from dpbench.document.bibtex import bibtex
from dpbench.document.citations import Cited


def test_an_entry_keeps_capitals_and_leaves_out_what_there_is_not():
    paper = Cited("key", ("A. B. Tramèr", "C. D"), "DP-SGD & Ghosts", 2022, "2110.05679")
    assert bibtex([paper]).splitlines() == [
        "@misc{key,",
        r"  author = {A. B. Tram\`{e}r and C. D},",
        r"  title = {{DP{-}SGD \& Ghosts}},",
        "  year = {2022},",
        "  eprint = {2110.05679},",
        "  archiveprefix = {arXiv},",
        "  note = {arXiv:2110.05679},",
        "}",
    ]
    assert bibtex([Cited("k", ("A",), "T", 2022, "1", "ICLR")] * 2).count("  howpublished = {ICLR},") == 2
