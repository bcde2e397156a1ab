"""Never comes to an end, nor does the process that it started."""

import subprocess
import time

from dpbench.interface import Supports

TITLE, MODULES, SUPPORTS, PRIVATE = "Hangs", "1", Supports(), True


def prepare(model, losses, clip):
    subprocess.Popen(["sleep", "600.25"])
    time.sleep(600)
