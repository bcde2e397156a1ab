import io
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dpbench.cli import app
from dpbench.records import Outcome, to_json
from dpbench.results import read
from tests.faked_command import ROOT
from tests.records_for_tests import ENVIRONMENT, record, write
from tests.test_comparison import ELSEWHERE, TRACED, good
from tests.test_slowdown import times

NONPRIVATE = good("nonprivate", 1.0, 1)


def compare(*words, stdin=None):
    return CliRunner().invoke(app, ["compare", *map(str, words)], input=stdin)


def pair(tmp_path, *new):
    """A base and a new file."""
    return write(tmp_path, [NONPRIVATE, good(seed=2)], "base"), write(
        tmp_path, new or [NONPRIVATE, good(seed=3)], "new"
    )


def process(*words, stdin=""):
    command = [sys.executable, "-c", "from dpbench.cli import main; main()", "compare", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT, timeout=60)


def test_each_exit_code_through_a_real_process(tmp_path):
    base, same = pair(tmp_path)
    dear = write(tmp_path, [NONPRIVATE, good(traced=replace(TRACED, flops=1001))], "dear")
    unlike = write(tmp_path, [good("opacus")], "unlike")
    for words, code, said in (
        ((base, same), 0, "outcome: 2 same"),
        ((base, dear, "--fail-on", "more"), 1, "flops: 1 same, 1 more"),
        ((base, "nowhere.jsonl"), 2, "nowhere.jsonl matches no file"),
        ((base, unlike), 4, "1 only in new"),
        ((base, same, "-k", "vmap"), 5, "-k 'vmap' matches none of 2 cells"),
    ):
        done = process(*words)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert said in done.stdout + done.stderr


def test_ctrl_c_while_it_waits_for_records_ends_it_with_130(tmp_path):
    base, _ = pair(tmp_path)
    code = "import dpbench.cli, sys; print(1, flush=True); dpbench.cli.main()"
    command = [sys.executable, "-c", code, "compare", str(base), "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in err) == (130, False)


def test_json_is_all_there_is_on_stdout_whatever_the_figures(tmp_path):
    base, new = pair(tmp_path, NONPRIVATE, record(memory=0.0))
    done = process(new, base, "--json", "--fail-on", "worse")
    (found,) = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (found["base"], found["new"], found["one_run"]) == (str(new), str(base), False)
    by = {(c["implementation"], c["quantity"]): c for c in found["changes"]}
    assert (by["bk", "memory"]["verdict"], by["bk", "memory"]["ratio"]) == ("more", None)
    assert json.loads(process(base, "--json").stdout)[1]["rounds"] == 20


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (
            {"seconds": (*times(1.0, 1)[1:], (float("nan"),))},
            "step_seconds of bk holds nan, expected s above 0 and below 1e+18",
        ),
        ({"memory": float("inf")}, "peak_live of bk holds inf, expected bytes at least 0 and below 1e+18"),
    ],
)
def test_what_no_clock_gives_is_refused_by_its_line(tmp_path, spoiled, said):
    base, new = pair(tmp_path, NONPRIVATE, record(**spoiled))
    done = process(base, new, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{new}, line 3: {said}" in done.stderr


def test_several_new_files_are_compared_with_one_base(tmp_path):
    base, same = pair(tmp_path)
    dear = write(tmp_path, [NONPRIVATE, good(traced=replace(TRACED, flops=1001))], "dear")
    done = compare(base, same, dear, "--json")
    assert [len([c for c in one["changes"] if c["verdict"] == "more"]) for one in json.loads(done.stdout)] == [0, 1]


def test_a_selection_is_still_held_against_the_reference_that_it_leaves_out(tmp_path):
    base = write(tmp_path, [good("nonprivate", 1.0, 1), good("bk", 1.2, 2)], "base")
    new = write(tmp_path, [good("nonprivate", 1.5, 3), good("bk", 1.8, 4)], "new")
    changes = json.loads(compare(base, new, "-k", "bk", "--json").stdout)[0]["changes"]
    assert {c["implementation"] for c in changes} == {"bk"}
    assert [c["verdict"] for c in changes if c["quantity"] == "seconds"] == ["same"]
    (seen,) = json.loads(compare(base, "-k", "bk", "--json").stdout)
    assert seen["relative"]


def test_other_hardware_is_not_compared_and_says_what_differs(tmp_path):
    base, new = pair(tmp_path)
    moved = new.read_text().replace(json.dumps(ENVIRONMENT, separators=(",", ":")), json.dumps(ELSEWHERE))
    new.write_text(re.sub(r',"crc":"[0-9a-f]{8}"', "", moved))
    done = compare(base, new)
    assert done.exit_code == 4
    assert "other hardware: cpu made up -> another" in done.stdout


@pytest.mark.parametrize("header", [True, False], ids=["file", "records"])
def test_a_dash_reads_a_file_or_records_from_stdin(tmp_path, header):
    base, new = pair(tmp_path)
    lines = [to_json(replace(r, environment=ENVIRONMENT)) for r in read(new).records]
    text = new.read_text() if header else "\n".join(lines) + "\n"
    (found,) = json.loads(compare(base, "-", "--json", stdin=text).stdout)
    (direct,) = json.loads(compare(base, new, "--json").stdout)
    assert found["new"] == "-"
    assert found["changes"] == direct["changes"]


@pytest.mark.parametrize(("text", "message"), [("", "stdin is empty"), ("what?\n", "not a record of dpbench")])
def test_what_is_no_record_on_stdin_is_a_mistake(tmp_path, text, message):
    error = compare(pair(tmp_path)[0], "-", stdin=text).exception
    assert message in str(error)
    assert getattr(error, "exit_code", None) == 2


def test_a_line_that_was_cut_off_on_stdin_is_said(tmp_path):
    base, new = pair(tmp_path)
    done = compare(base, "-", "--fail-on", "worse", stdin=new.read_text()[:-9])
    assert "-, line 3: incomplete" in done.stderr
    assert "only in base" in done.stdout
    assert done.exit_code == 1


def test_accepting_writes_the_new_one_over_the_base(tmp_path):
    base, new = pair(tmp_path, NONPRIVATE, good(factor=1.5, seed=3))
    assert compare(base, new, "--fail-on", "slower").exit_code == 1
    done = compare(base, new, "--accept")
    assert (done.exit_code, done.stderr) == (0, f"accepted: {base}\n")
    assert compare(base, new, "--fail-on", "slower,faster").exit_code == 0


@pytest.mark.parametrize(
    "words", [("BASE",), ("BASE", "NEW", "NEW"), ("-", "NEW"), ("BASE", "NEW", "-k", "bk")], ids=" ".join
)
def test_accepting_takes_one_whole_file_for_one_base(tmp_path, words):
    base, new = pair(tmp_path)
    before = base.read_bytes()
    names = {"BASE": base, "NEW": new}
    error = compare(*(names.get(w, w) for w in words), "--accept", stdin=new.read_text()).exception
    assert "dpbench compare BASE NEW --accept" in str(error)
    assert base.read_bytes() == before


def test_what_failed_is_not_accepted(tmp_path):
    base, new = pair(tmp_path, NONPRIVATE, record(outcome=Outcome.FAILED))
    before = base.read_bytes()
    assert "so it is no base" in str(compare(base, new, "--accept").exception)
    assert base.read_bytes() == before


@pytest.mark.parametrize("share", ["-0.1", "nan", "inf"])
def test_the_least_effect_is_a_share(tmp_path, share):
    assert "expected a share such as 0.03" in str(compare(*pair(tmp_path), f"--min-effect={share}").exception)


def test_a_verdict_that_is_none_is_a_mistake(tmp_path):
    assert "Did you mean slower" in str(compare(*pair(tmp_path), "--fail-on", "slowr").exception)


def test_one_file_says_what_it_could_show(tmp_path):
    base, _ = pair(tmp_path)
    done = compare(base)
    assert "2 of 2 timed cells have an interval" in done.stdout
    assert io.StringIO(done.stdout).readline().startswith("transformers:gpt2")
