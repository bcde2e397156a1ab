import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dpbench import forkserver
from dpbench.errors import DpbenchError
from dpbench.forkserver import CAN_FORK, ForkServer
from dpbench.job import Job
from dpbench.outcome import of_ending
from dpbench.records import Outcome, Workload

ROOT = Path(__file__).parent.parent
WORK = "tests.children_for_tests:work"
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has this")


def job(kind, **values):
    return Job(kind=kind, workload=Workload(model="m", batch=1), **values)


@pytest.fixture(scope="module", params=[pytest.param(True, marks=linux), False], ids=["forked", "fresh"])
def server(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with ForkServer(work=WORK, fork=request.param) as server:
            yield server


def messages(child, timeout=20.0):
    found = []
    while (message := child.receive(timeout)) is not None:
        found.append(message)
    return found


def alive(pid):
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        if sys.platform == "linux":
            return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
        return True
    return False


def gone(pid, timeout=10.0):
    deadline = time.monotonic() + timeout
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_a_child_tells_line_by_line_however_long_and_ends_well(server):
    child = server.start(job("answer"))
    first, facts, done = messages(child)
    assert (first["event"], done["event"]) == ("started", "done")
    assert len(facts["facts"]["big"]) == 300_000
    assert child.wait().status == 0
    assert child.wait().status == 0, "asking twice is harmless"


def test_a_child_leads_a_process_group_and_session_of_its_own(server):
    child = server.start(job("answer"))
    facts = messages(child)[1]["facts"]
    assert facts["group"] == facts["session"] == facts["pid"] == child.pid
    assert facts["session"] != os.getsid(0)
    child.wait()


@linux
def test_a_forked_child_is_the_first_to_be_killed_and_has_one_thread():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with ForkServer(work=WORK) as server:
            child = server.start(job("answer"))
            facts = messages(child)[1]["facts"]
            child.wait()
    assert facts["score"] == "1000"
    assert facts["threads"] == 1


@linux
def test_the_server_has_torch_loaded_and_is_one_thread_that_has_no_cuda():
    code = (
        "import os, dpbench.worker, torch;"
        "print(len(os.listdir('/proc/self/task')), torch.cuda.is_initialized(), torch.get_num_threads() > 0)"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.stdout.split()[:2] == ["1", "False"], done.stderr


@pytest.mark.parametrize(
    ("kind", "outcome", "reason"),
    [
        ("crash", Outcome.FAILED, "SIGSEGV"),
        ("raise", Outcome.FAILED, "the reason is here"),
        ("exit", Outcome.FAILED, "exit status 7"),
    ],
)
def test_how_a_child_ended_is_known_with_what_it_said(server, kind, outcome, reason):
    child = server.start(job(kind))
    assert messages(child) == [{"event": "started", "implementation": "bk"}]
    found = of_ending(child.wait())
    assert found[0] is outcome
    assert reason in found[1]


def test_a_kill_is_seen_as_the_end_of_the_messages(server):
    child = server.start(job("kill"))
    assert len(messages(child)) == 1
    assert child.wait().status == -signal.SIGKILL


def test_a_line_that_death_cut_off_is_no_message(server):
    child = server.start(job("torn"))
    assert len(messages(child)) == 1
    child.wait()


def test_who_hangs_is_noticed_and_killed(server):
    child = server.start(job("hang"))
    assert child.receive(20) is not None
    with pytest.raises(TimeoutError):
        child.receive(0.05)
    child.kill()
    assert child.wait().status == -signal.SIGKILL
    child.kill()


def test_killing_a_child_kills_what_it_started(server):
    child = server.start(job("family"))
    child.receive(20)
    grandchild = child.receive(20)["facts"]["grandchild"]
    child.kill()
    child.wait()
    assert gone(grandchild)


@linux
def test_a_child_that_takes_too_much_memory_is_refused_it(server):
    child = server.start(job("greedy", memory_limit=256 << 20))
    assert messages(child)[1]["facts"] == {"held": False}
    child.wait()


def test_the_server_goes_on_after_a_child_has_died(server):
    for kind in ("kill", "crash", "raise"):
        child = server.start(job(kind))
        messages(child)
        child.wait()
    child = server.start(job("answer"))
    assert len(messages(child)) == 3
    child.wait()


@linux
def test_what_a_child_imported_the_server_imports_before_the_next():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with ForkServer(work=WORK) as server:
            known = []
            for _ in range(2):
                child = server.start(job("import"))
                found = messages(child)
                child.wait()
                known.append(found[1]["facts"]["known"])
                server.remember(found[2]["imported"])
    assert known == [False, True]


@linux
def test_a_server_that_was_killed_is_replaced():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with ForkServer(work=WORK) as server:
            os.kill(server.pid, signal.SIGKILL)
            assert gone(server.pid)
            child = server.start(job("answer"))
            assert len(messages(child)) == 3
            child.wait()


@pytest.mark.parametrize("fork", [pytest.param(True, marks=linux), False])
def test_closing_leaves_no_process_behind(monkeypatch, fork):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ForkServer(work=WORK, fork=fork) as server:
        child = server.start(job("family"))
        child.receive(20)
        grandchild = child.receive(20)["facts"]["grandchild"]
        processes = [server.pid, child.pid, grandchild]
    assert all(gone(pid) for pid in processes if pid is not None)


@linux
def test_the_death_of_whoever_runs_it_ends_server_and_child():
    code = f"""
import os
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import Workload
with ForkServer(work={WORK!r}) as server:
    child = server.start(Job(kind="hang", workload=Workload(model="m", batch=1)))
    child.receive(20)
    print(server.pid, child.pid, flush=True)
    os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize("fork", [pytest.param(True, marks=linux), False])
def test_children_run_in_the_directory_and_environment_that_are_given(tmp_path, fork):
    """Other source than ours, as of another checkout."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "elsewhere.py").write_text("""
import os
def work(job, send):
    send({"event": "facts", "facts": {"cwd": os.getcwd(), "said": os.environ["SAID"], "home": os.environ.get("HOME")}})
""")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "source"), str(ROOT)]), "SAID": "this"}
    with ForkServer(work="elsewhere:work", fork=fork, directory=tmp_path, environment=environment) as server:
        child = server.start(job("any"))
        ((facts,),) = [[m["facts"] for m in messages(child)]]
        child.wait()
    assert facts == {"cwd": str(tmp_path), "said": "this", "home": os.environ.get("HOME")}


def test_fork_is_used_where_it_is_safe():
    assert (sys.platform == "linux") == CAN_FORK


@linux
def test_a_server_that_was_stopped_at_rest_is_replaced(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ForkServer(work=WORK) as server:
        child = server.start(job("answer"))
        messages(child)
        child.wait()
        stopped, launch = server.pid, server._launch

        def replace():
            monkeypatch.setattr(forkserver, "STARTS_S", 60)
            launch()

        monkeypatch.setattr(server, "_launch", replace)
        monkeypatch.setattr(forkserver, "STARTS_S", 0.2)
        monkeypatch.setattr(forkserver, "ASKED_S", 0.2)
        os.kill(stopped, signal.SIGSTOP)
        child = server.start(job("answer"))
        assert len(messages(child)) == 3
        child.wait()
        assert gone(stopped)


@linux
def test_a_server_that_was_stopped_while_a_child_worked_is_replaced(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(forkserver, "ENDS_S", 0.2)
    monkeypatch.setattr(forkserver, "ASKED_S", 0.2)
    with ForkServer(work=WORK) as server:
        child = server.start(job("family"))
        child.receive(20)
        left = [server.pid, child.pid, child.receive(20)["facts"]["grandchild"]]
        os.kill(server.pid, signal.SIGSTOP)
        child.kill()
        assert child.wait().status == -signal.SIGKILL
        assert all(gone(pid) for pid in left)
        child = server.start(job("answer"))
        assert len(messages(child)) == 3
        child.wait()


@linux
def test_one_that_cannot_start_says_so_and_how_to_go_on(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ForkServer(work="tests.no_such_module:work") as server:
        with pytest.raises(DpbenchError, match="could not, twice: .*no_such_module.*--resume"):
            server.start(job("answer"))


@linux
@pytest.mark.parametrize("kind", ["deserter", "exit_family"])
def test_what_a_child_leaves_behind_ends_with_it(monkeypatch, kind):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ForkServer(work=WORK) as server:
        child = server.start(job(kind))
        child.receive(20)
        grandchild = child.receive(20)["facts"]["grandchild"]
        assert child.receive(20) is None
        child.wait()
        assert gone(grandchild)


@linux
def test_the_death_of_whoever_runs_it_ends_what_has_a_session_of_its_own():
    code = f"""
import os
from dpbench.forkserver import ForkServer
from dpbench.job import Job
from dpbench.records import Workload
with ForkServer(work={WORK!r}) as server:
    child = server.start(Job(kind="away", workload=Workload(model="m", batch=1)))
    child.receive(20)
    print(server.pid, child.pid, child.receive(20)["facts"]["grandchild"], flush=True)
    os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 3, done.stderr
    assert all(gone(pid) for pid in pids)


@linux
def test_who_closes_its_line_and_lives_on_is_timed_out(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ForkServer(work=WORK) as server:
        child = server.start(job("deaf"))
        child.receive(20)
        with pytest.raises(TimeoutError):
            child.receive(0.2)
        child.kill()
        assert child.wait().status == -signal.SIGKILL


def test_of_what_a_child_says_no_more_is_read_than_is_kept(server):
    child = server.start(job("loud"))
    messages(child)
    assert child.wait().said == "..." + "x" * 400


def test_asking_for_a_gpu_at_import_does_not_start_its_driver_before_the_fork(server):
    child = server.start(job("answer"))
    facts = messages(child)[1]["facts"]
    child.wait()
    assert facts["asks"] == "1"
