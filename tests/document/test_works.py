from dpbench.document.works import BU_2023, EFRON, LEE, PLACE, WORKS


def test_a_work_in_a_sentence_and_in_a_list_of_references():
    assert (LEE.short, EFRON.short, BU_2023.short) == (
        "Lee and Kifer, 2021", "Efron and Tibshirani, 1993", "Bu et al., 2023"
    )  # fmt: skip
    assert str(BU_2023) == (
        "Zhiqi Bu, Yu-Xiang Wang, Sheng Zha, George Karypis. Differentially Private Optimization on Large Model at "
        "Small Cost. International Conference on Machine Learning (ICML), 2023. arXiv:2210.00038."
    )
    assert str(EFRON) == "Bradley Efron, Robert J. Tibshirani. An Introduction to the Bootstrap. Chapman & Hall, 1993."


def test_each_says_where_it_was_published():
    assert all(work.kind in PLACE and work.place and work.authors for work in WORKS)
