from dpbench.document.bibtex import bibtex
from dpbench.document.works import Work


def test_names_and_titles_stay_as_bibtex_reads_them():
    work = Work("key", "article", ("Yu-Xiang B. Tramèr", "C. D"), "DP-SGD & Ghosts", "The Journal", 2022, "2110.05679")
    assert bibtex([work]).splitlines() == [
        "@article{key,",
        r"  author = {Yu-Xiang B. Tram{\`{e}}r and C. D},",
        r"  title = {{DP-SGD {\&} Ghosts}},",
        "  journal = {The Journal},",
        "  year = {2022},",
        "  eprint = {2110.05679},",
        "  archiveprefix = {arXiv},",
        "}",
    ]


def test_a_preprint_names_its_number_once_and_a_book_its_publisher():
    preprint, book = bibtex(
        [Work("p", "misc", ("A",), "T", "arXiv preprint", 2021, "1234.5"), Work("b", "book", ("A",), "T", "House", 1)]
    ).split("\n\n")
    assert preprint.count("1234.5") == 1
    assert "  howpublished = {arXiv preprint arXiv:1234.5}," in preprint
    assert "  publisher = {House}," in book
    assert "eprint" not in book
