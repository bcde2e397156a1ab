from dataclasses import replace

from dpbench.comparison import compare
from dpbench.gate import judge
from dpbench.records import Outcome
from dpbench.reporting import github
from dpbench.rules import Rules
from tests.records_for_tests import record
from tests.test_comparison import TRACED, good, results

CHEAP, DEAR = TRACED, replace(TRACED, flops=1300, modules={"1": 600, "2a": 400, "4": 300})


def judged(base, new):
    changes = compare(results(*base), results(*new), reference=None)
    return judge(changes, new, Rules(), set()), changes


def many(count):
    names = [f"impl{i}" for i in range(count)]
    return judged([good(n) for n in names], [good(n, traced=DEAR) for n in names])


def test_at_most_ten_commands_and_errors_before_warnings():
    ruling, _ = many(15)
    lines = github.commands(ruling, {})
    assert len(ruling.tripped) == 15
    assert len(lines) == 10
    assert all(line.startswith("::error title=dpbench gate::") for line in lines)
    slower = good("slow", factor=1.3, seed=5)
    limited = judge(
        compare(results(good("slow"), good("b")), results(slower, good("b", traced=DEAR)), reference=None),
        [slower, good("b", traced=DEAR)],
        Rules(allow={"seconds": 0.9}),
        set(),
    )
    levels = [line.split(" ")[0] for line in github.commands(limited, {})]
    assert levels == ["::error", "::warning"]


def test_what_passes_gives_no_command():
    ruling, _ = judged([good()], [good()])
    assert github.commands(ruling, {}) == []


def test_a_command_is_one_line_at_the_implementations_file_with_everything_escaped():
    reason = "50% of it\r\nbroke: ::error::no"
    ruling, _ = judged([good()], [record(outcome=Outcome.FAILED, reason=reason)])
    (line,) = github.commands(ruling, {"bk": "a,b:c%d.py"})
    assert line.startswith("::error file=a%2Cb%3Ac%25d.py,line=1,title=dpbench gate::")
    assert "50%25 of it%0D%0Abroke" in line
    assert "\n" not in line


def test_the_summary_is_markdown_whose_tables_hold():
    ruling, changes = judged([good("a|b")], [good("a|b", traced=DEAR)])
    text = github.summary(ruling, changes, "base: main")
    lines = text.splitlines()
    assert lines[0] == "## dpbench gate: does not pass"
    assert "base: main" in lines
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 3
    for row in table:
        assert row.replace("\\|", "").count("|") == 7
    assert "a\\|b on" in table[2]
    assert "1.30x more" in table[2]
    assert "no growth is allowed; module 4: 0 -> 300" in table[2]
    assert "- flops: 1 more" in lines


def test_the_summary_of_what_passes_says_so():
    ruling, changes = judged([good()], [good()])
    text = github.summary(ruling, changes, "base: main")
    assert text.startswith("## dpbench gate: passes\n")
    assert "**" not in text


def test_a_summary_is_added_to_what_is_there(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    github.append(str(path), "## after → now")
    assert path.read_text(encoding="utf-8") == "before\n## after → now\n"
