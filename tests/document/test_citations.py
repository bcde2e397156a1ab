import pytest

from dpbench.document.citations import OF, cited, credit
from dpbench.document.works import ABADI, BU_2022, BU_2023, WORKS, YOUSEFPOUR


@pytest.mark.parametrize(
    ("name", "works"),
    [
        ("vmap", "Subramani et al., 2021"),
        ("opacus_improved", "Yousefpour et al., 2021"),
        ("lib:opacus/hooks", "Yousefpour et al., 2021"),
        ("lib:opacus/ghost", "Li et al., 2022; Yousefpour et al., 2021"),
        ("fastgradclip_improved", "Lee and Kifer, 2021"),
        ("ghostclip", "Li et al., 2022"),
        ("mixghostclip", "Bu et al., 2022"),
        ("bk", "Bu et al., 2023"),
        ("bk_mixopt", "Bu et al., 2022; Bu et al., 2023"),
        ("lib:fastdp/bk-ghost", "Bu et al., 2023"),
    ],
)
def test_whose_algorithm_it_is(name, works):
    said = credit([name, "nonprivate"])
    assert said == (
        "Gradients are clipped example by example, as in DP-SGD (Abadi et al., 2016), "
        f"by the algorithms of {name} ({works})."
    )
    assert {work.short for work in cited([said])} == {"Abadi et al., 2016", *works.split("; ")}


def test_who_has_no_work_of_its_own_clips_all_the_same():
    assert credit(["mine.py", "tf_privacy"]).endswith("as in DP-SGD (Abadi et al., 2016).")
    assert credit(["nonprivate"]) == ""


def test_one_work_is_named_once_for_all_that_are_of_it():
    assert credit(["opacus", "bk", "opacus_improved"]).endswith(
        "of opacus, opacus_improved (Yousefpour et al., 2021); bk (Bu et al., 2023)."
    )


def test_what_is_cited_is_what_is_named_by_year():
    assert cited([f"a ({BU_2023.short})", f"b ({BU_2022.short}; {ABADI.short})"]) == [ABADI, BU_2022, BU_2023]
    assert cited(["none"]) == []


def test_every_work_that_is_anybodys_can_be_cited_and_is_told_from_the_others():
    assert {work for works in OF.values() for work in works} <= {*WORKS}
    assert len({work.short for work in WORKS}) == len({work.key for work in WORKS}) == len(WORKS)
    assert [work.year for work in WORKS] == sorted(work.year for work in WORKS)
    assert YOUSEFPOUR in WORKS
