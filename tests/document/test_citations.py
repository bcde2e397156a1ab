import pytest

from dpbench.document.citations import citations


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("opacus_improved", "2109.12298"),
        ("lib:opacus/ghost", "2109.12298"),
        ("fastgradclip_improved", "2009.03106"),
        ("ghostclip", "2110.05679"),
        ("mixghostclip", "2205.10683"),
        ("bk", "2210.00038"),
        ("lib:fastdp/bk-ghost", "2210.00038"),
    ],
)
def test_the_paper_of_an_implementation_and_that_of_dpsgd(name, number):
    first, own = citations([name, "nonprivate"])
    assert first.arxiv == "1607.00133"
    assert own.arxiv == number


def test_who_has_no_paper_of_its_own_clips_all_the_same():
    assert len(citations(["mine.py"])) == 1
    assert citations(["nonprivate"]) == []


def test_a_paper_in_a_list_of_references():
    assert str(citations(["bk"])[1]) == (
        "Z. Bu, Y.-X. Wang, S. Zha, G. Karypis. Differentially Private Optimization on Large Model at Small Cost. "
        "ICML 2023. arXiv:2210.00038."
    )
    assert str(citations(["opacus"])[1]).endswith("Library in PyTorch. 2021. arXiv:2109.12298.")
