import os
import subprocess
import sys

import pytest

from dpbench.errors import DpbenchError
from dpbench.sides import Side, sides


def checkout(path, where="."):
    (path / where).mkdir(parents=True)
    (path / where / "mine.py").write_text(f"NAME = {path.name!r}")
    return path


def test_two_names_or_files_are_implementations(tmp_path):
    file = checkout(tmp_path / "a") / "mine.py"
    base, new = sides("bk", str(file))
    assert (base.implementation, new.implementation) == ("bk", str(file))
    assert (base.checkout, dict(base.environment)) == (None, {})


def test_two_directories_are_checkouts(tmp_path):
    base, new = sides(str(checkout(tmp_path / "a")), str(checkout(tmp_path / "b")))
    assert (base.checkout, new.checkout) == (tmp_path / "a", tmp_path / "b")
    assert base.implementation is None


@pytest.mark.parametrize("where", [".", "src"])
def test_a_checkout_is_imported_before_what_is_installed_wherever_its_source_lies(tmp_path, monkeypatch, where):
    installed = checkout(tmp_path / "installed")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    for side in sides(str(checkout(tmp_path / "a", where)), str(checkout(tmp_path / "b", where))):
        code = "import mine; print(mine.NAME)"
        environment = {**os.environ, **side.environment}
        done = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == side.checkout.name
        assert str(installed) in side.environment["PYTHONPATH"].split(os.pathsep)


def test_what_is_none_of_these_says_what_to_give(tmp_path):
    (tmp_path / "empty").mkdir()
    source = str(checkout(tmp_path / "a"))
    with pytest.raises(DpbenchError, match="expected two implementations .* or two checkouts"):
        sides("bk", source)
    with pytest.raises(DpbenchError, match="no .py file in .*, expected a checkout"):
        sides(str(tmp_path / "empty"), source)
    with pytest.raises(DpbenchError, match="no file nowhere.py"):
        sides("nowhere.py", "bk")


def test_of_a_base_what_pythonpath_has_of_this_tree_is_taken_from_its_own(tmp_path, monkeypatch):
    here, there, elsewhere = (checkout(tmp_path / name, "lib") for name in ("here", "there", "elsewhere"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here / "lib"), str(elsewhere / "lib")]))
    base = Side(name="HEAD", checkout=there, instead_of=(here, there))
    assert base.environment["PYTHONPATH"].split(os.pathsep)[2:] == [str(there / "lib"), str(elsewhere / "lib")]
