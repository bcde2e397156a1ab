from dpbench.reporting.columns import aligned


def test_numbers_stand_to_the_right_and_no_line_ends_in_blanks():
    assert aligned([["a", "1", "x"], ["bbb", "22", ""]]) == ["a     1  x", "bbb  22"]
    assert aligned([]) == []
