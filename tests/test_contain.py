import resource
import subprocess
import sys
import tempfile

import pytest

from dpbench import contain

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has this")


def child(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_a_child_may_take_is_less_than_what_there_is():
    import psutil

    assert 0 < contain.available_memory() < psutil.virtual_memory().total


@linux
def test_beyond_its_limit_a_process_gets_no_memory():
    code = """
from dpbench import contain
contain.limit_memory(100 << 20)
fits = bytearray(50 << 20)
try:
    bytearray(200 << 20)
except MemoryError:
    print("refused")
"""
    assert child(code) == ["refused"]


@linux
def test_a_limit_that_the_user_has_set_stays():
    code = """
import resource
from dpbench import contain
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 31))
contain.limit_memory(1 << 40)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 2000))
contain.limit_files()
print(*resource.getrlimit(resource.RLIMIT_DATA), *resource.getrlimit(resource.RLIMIT_FSIZE))
"""
    assert child(code) == [str(n) for n in (1 << 30, 1 << 30, 1000, 1000)]


@linux
def test_a_child_cannot_fill_the_disk():
    code = """
import os, resource
from dpbench import contain
contain.limit_files()
disk = os.fstatvfs(1)
print(resource.getrlimit(resource.RLIMIT_FSIZE)[0], disk.f_bavail * disk.f_frsize)
"""
    with tempfile.TemporaryFile("w+") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
        out.seek(0)
        limit, free = map(int, out.read().split())
    assert limit <= max(1 << 26, 0.95 * free)


@linux
def test_signals_wait_until_an_import_is_over():
    code = """
import os, signal
from dpbench import contain
try:
    with contain.uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        print("imported", flush=True)
    print("late")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert child(code) == ["imported", "interrupted"]


@linux
def test_the_limit_does_not_count_what_is_only_mapped():
    code = """
import mmap
from dpbench import contain
contain.limit_memory(100 << 20)
mapped = mmap.mmap(-1, 8 << 30, prot=mmap.PROT_READ)
print("mapped")
"""
    assert child(code) == ["mapped"]


@linux
def test_this_process_is_not_limited():
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY


@linux
def test_a_process_can_ask_to_be_the_first_to_be_killed():
    code = (
        "from dpbench import contain; contain.be_first_to_be_killed(); print(open('/proc/self/oom_score_adj').read())"
    )
    assert child(code) == ["1000"]


@linux
def test_who_lost_his_parent_before_he_could_say_so_ends():
    code = "from dpbench import contain; contain.die_with(1 << 30); print('still here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_the_kernels_count_only_grows_or_is_not_told():
    kills = contain.out_of_memory_kills()
    assert kills is None or kills >= 0


def test_memory_goes_on_working_when_freed_memory_is_kept():
    code = """
from dpbench import contain
contain.keep_freed_memory()
for _ in range(3):
    big = bytearray(100 << 20)
    del big
print("fine")
"""
    assert child(code) == ["fine"]
    assert contain.ALLOCATOR
