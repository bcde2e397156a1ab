from dpbench.reporting.columns import aligned


def test_numbers_stand_to_the_right_and_no_line_ends_in_blanks():
    assert aligned([["a", "1", "x"], ["bbb", "22", ""]]) == ["a     1  x", "bbb  22"]
    assert aligned([]) == []


def test_a_last_column_of_text_stands_to_the_left():
    lines = [["a", "1", "short"], ["bbb", "22", "a long one"]]
    assert aligned(lines, text_last=True) == ["a     1  short", "bbb  22  a long one"]
    assert aligned(lines) == ["a     1       short", "bbb  22  a long one"]


def test_a_last_column_of_text_may_be_empty_or_the_only_one():
    assert aligned([["a", "1", "x"], ["bbb", "22", ""]], text_last=True) == ["a     1  x", "bbb  22"]
    assert aligned([["a"], ["bbb"]], text_last=True) == ["a", "bbb"]
    assert aligned([], text_last=True) == []


def test_several_columns_can_stand_to_the_left():
    assert aligned([["a", "x", "1"], ["bbb", "yy", "22"]], left=2) == ["a    x    1", "bbb  yy  22"]
