"""A reproduction, its children simulated: in order, kept figure by figure, gone on with and nothing done twice."""

import pytest

from dpbench import store
from dpbench.errors import DpbenchError
from dpbench.reproducing.begun import go_on, held
from dpbench.reproducing.events import Begun, Progress, Seen
from dpbench.reproducing.running import reproduce
from dpbench.reproduction import Number, Reproduced, read
from tests.reproducing.tiny import ENVIRONMENT, PAPER, SUITE, asked, unprocessed, written
from tests.test_runner import FakeChild, FakeLauncher


@pytest.fixture
def paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not calibrated"))
    written(tmp_path)
    return tmp_path


def run(monkeypatch, ask, launcher=None):
    unprocessed(monkeypatch, launcher or FakeLauncher())
    return list(reproduce(ask, ENVIRONMENT))


def go(monkeypatch, directory, launcher=None):
    """``--resume`` and nothing else."""
    ask = asked(directory, *read(directory / "out").asked)
    return run(monkeypatch, go_on(ask, read(ask.directory), ENVIRONMENT), launcher)


def kinds(events):
    return [type(event) for event in events]


def seen(events):
    return [(e.row.implementation, e.row.workload.batch, str(e.row.outcome)) for e in events if isinstance(e, Seen)]


ONE = [(name, 8, "ok") for name in ("nonprivate", "bk", "opacus")] + [("nonprivate", 12, "ok"), ("bk", 12, "ok")]


def test_figures_one_after_the_other_each_kept_when_it_is_given(paper, monkeypatch):
    unprocessed(monkeypatch, FakeLauncher())
    ids = []
    for event in reproduce(asked(paper), ENVIRONMENT):
        if isinstance(event, Reproduced):
            ids.append(event.id)
            assert [f.id for f in read(paper / "out").figures] == ids
    assert ids == ["one", "two"]


def test_what_is_in_a_figure(paper, monkeypatch):
    events = run(monkeypatch, asked(paper, "one"))
    assert kinds(events) == [Progress, Begun, *[Progress] * 3, *[Seen] * 5, Reproduced]
    assert seen(events) == ONE
    made = events[-1]
    assert made.left_out == ("small: B=16 and opacus (slow)",)
    assert made.commands == ("dpbench run small --device cuda",)
    (file,) = made.files
    assert len(store.read(paper / "out" / file).records) == 5
    published = {v.implementation: v for v in made.values if v.quantity == "throughput" and v.sizes == {"B": 8}}
    assert published["bk"].absolute.published == Number(800.0)
    assert published["bk"].ratio.published == Number(0.8)
    left = [v for v in made.values if v.sizes == {"B": 16} and v.implementation == "opacus"]
    assert all(v.absolute.measured == Number() and v.absolute.predicted.value for v in left)
    assert {v.at for v in made.values} == {"", "synthetic:mlp(width=16,depth=2) B=12 threads=1"}
    assert not any(v.expected_here for v in made.values), "the machine is not calibrated"


def test_nothing_is_run_where_nothing_is_to_be_measured(paper, monkeypatch):
    launcher = FakeLauncher()
    events = run(monkeypatch, asked(paper, "one", measured=False), launcher)
    assert launcher.jobs == []
    assert events[-1].left_out == ("nothing was measured, as was asked for",)
    assert not any(v.absolute.measured for v in events[-1].values)


@pytest.mark.parametrize(
    ("trouble", "word"),
    [
        ({("memory", "bk"): "out of memory"}, "oom"),
        ({("parity", "bk"): "refused"}, "refused"),
        ({("parity", "bk"): "failed"}, "failed"),
        ({("memory", "bk"): "dies"}, "failed"),
    ],
)
def test_what_goes_wrong_is_a_word_in_every_column(paper, monkeypatch, trouble, word):
    made = run(monkeypatch, asked(paper, "one"), FakeLauncher(trouble))[-1]
    bad = [v for v in made.values if v.implementation == "bk" and v.quantity == "throughput"]
    assert {v.absolute.measured.word.partition(":")[0] for v in bad} == {word}
    assert {v.ratio.measured.word.partition(":")[0] for v in bad} == {word}
    assert all(v.absolute.measured.value is None and v.ratio.measured.value is None for v in bad)


class Killed(Exception):
    pass


def killed(job):
    raise Killed


def test_broken_off_after_a_figure_it_goes_on_with_the_next(paper, monkeypatch):
    unprocessed(monkeypatch, FakeLauncher())
    running = reproduce(asked(paper), ENVIRONMENT)
    for event in running:
        if isinstance(event, Reproduced):
            break
    running.close()
    before = read(paper / "out").figures
    launcher = FakeLauncher()
    events = go(monkeypatch, paper, launcher)
    assert [e.figure.id for e in events if isinstance(e, Begun)] == ["two"]
    assert seen(events) == ONE[:3]
    after = read(paper / "out")
    assert after.figures[:1] == before
    assert [f.id for f in after.figures] == ["one", "two"]


def test_broken_off_amid_a_figures_measurements_no_cell_is_measured_twice(paper, monkeypatch):
    first = FakeLauncher({("memory", "nonprivate"): lambda job: killed(job) if job.workload.batch == 12 else None})
    with pytest.raises(Killed):
        run(monkeypatch, asked(paper), first)
    assert read(paper / "out").figures == ()
    (file,) = (paper / "out").glob("*.jsonl")
    with file.open("a") as torn:
        torn.write('{"cell":')
    second = FakeLauncher()
    events = go(monkeypatch, paper, second)
    assert seen(events) == [*ONE[3:], *ONE[:3]], "the rest of the first figure, and the second"
    assert len(store.read(file).records) == 5
    assert read(paper / "out").figures[0].files == (file.name,)
    made = read(paper / "out").figures[0]
    assert all(v.absolute.measured for v in made.values if v.quantity == "throughput" and v.sizes == {"B": 8})


def test_gone_on_with_when_all_is_there_nothing_is_done(paper, monkeypatch):
    run(monkeypatch, asked(paper))
    before = (paper / "out" / "reproduction.json").read_bytes()
    launcher = FakeLauncher()
    assert go(monkeypatch, paper, launcher) == []
    assert launcher.jobs == []
    assert (paper / "out" / "reproduction.json").read_bytes() == before


def test_two_runs_of_one_suite_in_a_figure_are_kept_apart(paper, monkeypatch):
    again = '[[figure.run]]\nsuite = "small"\nselect = "B=16"\nquantities = ["throughput"]\n'
    written(paper, f"{PAPER}\n{again}")
    made = run(monkeypatch, asked(paper, "two"))[-1]
    assert len(made.files) == 2
    assert all(v.absolute.measured for v in made.values if v.quantity == "throughput" and v.sizes == {"B": 12})
    assert {v.quantity for v in made.values} == {"throughput", "memory"}


def test_a_suite_that_is_a_file_is_gone_on_with(paper, monkeypatch):
    written(paper, PAPER.replace('suite = "small"', 'suite = "suites/small.toml"'))
    trouble = {("memory", "nonprivate"): lambda job: killed(job) if job.workload.batch == 12 else None}
    with pytest.raises(Killed):
        run(monkeypatch, asked(paper, "one"), FakeLauncher(trouble))
    assert seen(go(monkeypatch, paper)) == ONE[3:]


def test_a_second_run_at_once_is_refused(paper, monkeypatch):
    with held(paper / "out"), pytest.raises(DpbenchError, match="another run writes to"):
        run(monkeypatch, asked(paper))
    assert not (paper / "out").exists()


def test_what_can_be_known_before_is_refused_before_anything_is_done(paper, monkeypatch):
    launcher = FakeLauncher()
    for given in ({"device": "cuda:99"}, {"card": "A1000"}):
        with pytest.raises(DpbenchError):
            run(monkeypatch, asked(paper, **given), launcher)
    written(paper, suite=SUITE.replace("[8, 16]", "32"))
    with pytest.raises(DpbenchError, match="do not fit"):
        run(monkeypatch, asked(paper), launcher)
    assert launcher.jobs == []
    assert not (paper / "out").exists()


class Mistaken(FakeLauncher):
    """What checks the models finds mistakes."""

    def start(self, job):
        self.jobs.append(job)
        mistake = {"event": "mistake", "workload": job.workload.label(), "reason": "unknown option 'widht'"}
        return FakeChild([mistake, {"event": "done"}], 0)


def test_a_model_that_cannot_be_built_is_told_before_the_first_figure_and_nothing_is_written(paper, monkeypatch):
    launcher = Mistaken()
    with pytest.raises(DpbenchError, match="unknown option 'widht'"):
        run(monkeypatch, asked(paper), launcher)
    assert [job.kind for job in launcher.jobs] == ["check"]
    assert not (paper / "out").exists()


def test_figures_of_complexity_and_decisions(paper, monkeypatch):
    more = ""
    for kind in ("complexity", "decisions"):
        more += f'[[figure]]\nid = "{kind}"\ntitle = "T"\nkind = "{kind}"\nprinted = "p"\nread = "r"\n'
        more += '[[figure.run]]\nsuite = "small"\nselect = "B=8"\nquantities = ["flops"]\n'
        more += '[[figure.term]]\nof = "nonprivate"\nBTpd = 6\n' if kind == "complexity" else ""
        more += '[[figure.row]]\nmodel = "synthetic:mlp"\nfirst_ghost_layer = 2\n' if kind == "decisions" else ""
    written(paper, f"{PAPER}\n{more}")
    launcher = FakeLauncher()
    events = run(monkeypatch, asked(paper, "complexity", "decisions"), launcher)
    assert launcher.jobs == []
    table, places = [e for e in events if isinstance(e, Reproduced)]
    assert [v.absolute.published for v in table.values] == [Number(6.0)]
    assert [v.absolute.off for v in places.values] == [-0.5], "the first of them, not the second"
    assert [[sizes for _, *sizes in layers] for layers in places.layers.values()] == [[[1, 16, 16]] * 2]
    assert read(paper / "out").figures == (table, places)


def test_an_implementation_that_cannot_be_loaded_is_told_before_anything_is_done(paper, monkeypatch):
    (paper / "dies.py").write_text("import nothing_of_that_name")
    written(paper, suite=SUITE.replace('"opacus"]', '"opacus", "dies.py"]'))
    launcher = FakeLauncher()
    with pytest.raises(DpbenchError, match="dies.py could not be imported"):
        run(monkeypatch, asked(paper), launcher)
    assert launcher.jobs == []
    assert not (paper / "out").exists()


@pytest.mark.parametrize("changed", [PAPER.replace("bk = 800", "bk = 1"), PAPER.replace("rounds = 1", "rounds = 3")])
def test_what_figures_said_when_it_was_begun_is_not_mixed_with_what_they_say_now(paper, monkeypatch, changed):
    run(monkeypatch, asked(paper))
    written(paper, changed)
    with pytest.raises(DpbenchError, match="one of .*out has changed since that was begun: .* begin in another"):
        go(monkeypatch, paper)
    written(paper)
    assert go(monkeypatch, paper) == []
