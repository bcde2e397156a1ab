import subprocess
import sys

MODULES = [
    *("records", "store", "stats", "selection", "suite", "frame", "rows"),
    *("state", "comparability", "environment", "nvml", "procfs"),
    *("reporting.table", "reporting.formats", "reporting.plots", "reporting.summary"),
]


def test_results_are_read_and_shown_without_torch():
    heavy = ("torch", "pandas", "matplotlib", "rich")
    imports = "\n".join(f"import dpbench.{module}" for module in MODULES)
    code = f"import sys\n{imports}\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
